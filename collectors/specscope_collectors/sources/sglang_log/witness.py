"""One server, two witnesses: what of a log is left to say when the server's metrics are scraped, too (pure).

The launch is the scraped one, which knows the engine's version. A value that the scrape gives is not given a
second time: sums over ranks would double. What only the log tells stays: events, and the metrics that this
version does not export.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from specscope_collectors.board import Watched
from specscope_collectors.observations import Event, Launch, Level, Observation

ALWAYS_SCRAPED = frozenset({
    "requests.running", "requests.queued", "kv.usage", "kv.used_tokens", "throughput.generated",
    "spec.accept_length",
})  # fmt: skip
"""Every version's ``/metrics`` has them once a request has run; the log may tell of that request first."""
SEED, SMALLEST_DRAWN = "random_seed", 100_000
BEFORE_MS = 60_000
"""How long before its first scrape a launch may have printed lines."""
_OF_LAUNCHES = ("launch", "restart")


class Bond(msgspec.Struct, frozen=True, array_like=True):
    """Whose launch the lines of the log's launch belong to. Kept in the checkpoint."""

    log_key: str = ""
    key: str = ""
    """Of the scraped launch; empty when the log's own launch is used."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What to store of one portion."""

    launch_key: str | None
    observations: tuple[Observation, ...]
    bond: Bond
    is_held: bool = False
    """Wait: the scrape will say soon which launch this is."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the log says: one portion, and the log's launch that it belongs to."""

    launch: Launch | None
    launch_key: str | None
    observations: Sequence[Observation]

    @property
    def newest_ms(self) -> int | None:
        """Time of the newest level."""
        return max(
            (record.time_ms for record in self.observations if isinstance(record, Level)), default=None
        )


def rule(said: Said, bond: Bond, watched: Watched | None, *, is_expected: bool, is_patient: bool) -> Ruling:
    """Decide. ``is_expected``: this process scrapes the server; ``is_patient``: waiting is still allowed."""
    if watched is None:
        return _before_the_scrape(said, bond, is_expected=is_expected, is_patient=is_patient)
    is_same = is_same_start(said.launch, watched.launch)
    if is_same and said.newest_ms is not None and bond != Bond(said.launch_key or "", watched.launch.key):
        return _joined_since(said, watched)
    if bond.key and bond.log_key == said.launch_key:
        is_newer = said.newest_ms is not None and said.newest_ms >= watched.launch.time_ms
        return _joined(said, Bond(bond.log_key, watched.launch.key if is_newer else bond.key), watched)
    if said.newest_ms is None:
        # A beginning, or an error while it starts: not yet a reason to say which launch it is.
        return _joined(said, msgspec.structs.replace(bond, key=bond.key or watched.launch.key), watched, bond)
    fits = compatible(said.launch, watched.launch)
    is_old = not bond.key and said.newest_ms < watched.launch.time_ms - BEFORE_MS
    if is_old or (not fits and not is_patient):
        return _own(said, bond)
    if is_patient and (not fits or bond.key == watched.launch.key):
        return Ruling(None, (), bond, is_held=True)
    return _joined(said, Bond(said.launch_key or "", watched.launch.key), watched)


def is_same_start(log: Launch | None, scraped: Launch) -> bool | None:
    """Whether both tell of one start of the engine, by the seed that it draws; None when that is not known.

    Small seeds are chosen by people, who choose the same one again.
    """
    seeds = [launch.config.get(SEED) for launch in (log, scraped) if launch is not None]
    if len(seeds) < 2 or not all(isinstance(seed, int) and seed >= SMALLEST_DRAWN for seed in seeds):
        return None
    return bool(seeds[0] == seeds[1])


def since(scraped: Launch, log: Launch) -> Launch:
    """Return the scraped launch as it began according to the log."""
    return msgspec.structs.replace(scraped, time_ms=min(log.time_ms, scraped.time_ms))


def compatible(log: Launch | None, scraped: Launch) -> bool:
    """Whether both can be the same launch, as far as both say what it is."""
    if log is None:
        return True
    if (is_same := is_same_start(log, scraped)) is not None:
        return is_same
    pairs = (
        (log.model, scraped.model),
        (log.speculative.algorithm, scraped.speculative.algorithm),
        (log.speculative.draft_model, scraped.speculative.draft_model),
        (log.speculative.num_draft_tokens, scraped.speculative.num_draft_tokens),
    )
    is_adaptive = bool(log.speculative.adaptive or scraped.speculative.adaptive)
    return all(
        mine == other or mine is None or other is None for mine, other in pairs[: 3 if is_adaptive else 4]
    )


def left_to_say(
    observations: Sequence[Observation], scraped: Collection[str], model: str | None
) -> tuple[Observation, ...]:
    """Return what a log adds to a scraped launch; ``scraped``: metrics that the scrape gives.

    Levels get the label of the model, as the scraped series have it.
    """
    return tuple(
        _labelled(record, model) if isinstance(record, Level) else record
        for record in observations
        if not isinstance(record, Launch)
        and not (isinstance(record, Event) and record.kind in _OF_LAUNCHES)
        and not (isinstance(record, Level) and record.metric in scraped)
    )


def _before_the_scrape(said: Said, bond: Bond, *, is_expected: bool, is_patient: bool) -> Ruling:
    """Nothing is known of the server from elsewhere (yet)."""
    if not is_expected:
        return _own(said, bond)
    if said.newest_ms is None:
        return Ruling(bond.key or None, left_to_say(said.observations, (), None), bond)
    return Ruling(None, (), bond, is_held=True) if is_patient else _own(said, bond)


def _own(said: Said, bond: Bond) -> Ruling:
    """Store it as the log's own launch, which may have been kept back so far."""
    own = Bond(said.launch_key or "")
    has_launch = any(isinstance(record, Launch) for record in said.observations)
    first = (said.launch,) if said.launch is not None and bond != own and not has_launch else ()
    return Ruling(said.launch_key, (*first, *said.observations), own)


def _joined(said: Said, bond: Bond, watched: Watched, keep: Bond | None = None) -> Ruling:
    scraped = watched.metrics
    if not ALWAYS_SCRAPED.isdisjoint(scraped):
        scraped |= ALWAYS_SCRAPED
    model = watched.launch.served_model_name or watched.launch.model
    return Ruling(bond.key, left_to_say(said.observations, scraped, model), keep or bond)


def _joined_since(said: Said, watched: Watched) -> Ruling:
    """It is the scraped launch without doubt: it began when the log says."""
    assert said.launch is not None
    ruling = _joined(said, Bond(said.launch_key or "", watched.launch.key), watched)
    launch = since(watched.launch, said.launch)
    return Ruling(ruling.launch_key, (launch, *ruling.observations), ruling.bond)


def _labelled(level: Level, model: str | None) -> Level:
    if model is None or "model_name" in level.labels:
        return level
    return msgspec.structs.replace(level, labels=level.labels | {"model_name": model})
