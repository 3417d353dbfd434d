"""Scrapes that somebody else made → observations, by the rules by which our own scrapes are read.

Pure but for the `Tally`: all that a scrape is judged by stands in the `State` that is passed on, so that who
goes on from a stored one decides the same. A restart that nothing explains waits for some scrapes, as it does
when we scrape ourselves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from specscope_collectors import launches
from specscope_collectors.alternation import DOUBTFUL, Doubt, Watch
from specscope_collectors.engines import engine_named, engine_of
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.identity import Change, Evidence
from specscope_collectors.increments import Advance, CounterMemory
from specscope_collectors.launches import Known, Verdict
from specscope_collectors.observations import HealthState, Level, Observation, SourceHealth
from specscope_collectors.redaction import redact_text
from specscope_collectors.scrape import MetricsReading
from specscope_collectors.sources.prometheus import SOURCE
from specscope_collectors.sources.prometheus.scrapes import Scrape, exposition
from specscope_collectors.sources.prometheus.state import Place, State
from specscope_collectors.tick import Tick, growth, measurements

T = TypeVar("T", Place, State)

_MAX_LABEL_CHARACTERS = 200
_EXAMPLES = 5


@dataclass(slots=True)
class Tally:
    """What was read of one server."""

    scrapes: int = 0
    failed: int = 0
    """Scrapes that Prometheus made in vain (``up`` 0)."""
    others: int = 0
    """Scrapes of further witnesses of the same server, left out."""
    doubtful: int = 0
    """Scrapes of which nothing was taken: counters fell although the server was not away."""
    launches: int = 0
    refused: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    version: str | None = None
    """Engine, and the oldest version that may have written what was read last."""

    def refuse(self, mapped: Mapped) -> None:
        """Count what was refused in one scrape."""
        self.refused += mapped.refused
        for reason in mapped.refusals:
            if reason in self.refusals or len(self.refusals) < _EXAMPLES:
                self.refusals[reason] += 1


@dataclass(frozen=True, slots=True)
class Step:
    """What one scrape adds."""

    state: State
    observations: list[Observation]


class Replay:
    """Reads the scrapes of one server, oldest first."""

    def __init__(self, max_series: int) -> None:
        self.tally = Tally()
        self._max_series = max_series

    def read(self, state: State, scrape: Scrape, doubled: frozenset[str]) -> Mapped | None:
        """Return what the engine answered in canonical terms; None when it did not answer."""
        if not scrape.is_good:
            return None
        found = exposition(scrape, self._max_series, doubled)
        engine = engine_of(found.names, engine_named(state.seen.engine))
        return engine.map(found, adaptive=False) if engine is not None else None

    def fell(self, state: State, scrape: Scrape, mapped: Mapped) -> bool:
        """Return whether something between the last scrape and this one must be looked at closely."""
        grown = growth(_tick(scrape.time_ms, mapped), state.memory)
        restarted = scrape.started is not None and scrape.started != state.place.started
        different = state.known is not None and launches.looks_different(state.known, mapped)
        return grown is None or grown.fell > 0 or restarted or different

    def take(self, state: State, scrape: Scrape, mapped: Mapped | None, *, exact: bool = True) -> Step:
        """Return the state after ``scrape`` and what it adds. ``exact``: it has the time of a real scrape."""
        found = self._up(scrape)
        if mapped is None:
            self.tally.failed += scrape.up == 0
            place = _replaced(state.place, done_to_ms=scrape.time_ms, failed=True)
            return Step(_replaced(state, place=place), found)
        self.tally.scrapes += 1
        gap = _is_gap(state.place, scrape)
        anew = _new_start(state.place, scrape)
        watch = Watch(lambda: scrape.time_ms / 1000, state.seen)
        doubt = watch.judge(mapped.counters, gap=gap or anew, engine=mapped.engine)
        memory = state.memory
        place = _after(state.place, scrape, exact=exact, is_change=gap or anew)
        if doubt in DOUBTFUL:
            self.tally.doubtful += 1
            return Step(_replaced(state, place=place, seen=watch.seen), found)
        if doubt is Doubt.ANEW:
            memory = CounterMemory()
        self.tally.refuse(mapped)
        state = State(place=place, memory=memory, known=state.known, seen=watch.seen)
        return self._measured(state, scrape, mapped, found, gap=gap or doubt is not Doubt.NONE, anew=anew)

    def _measured(
        self,
        state: State,
        scrape: Scrape,
        mapped: Mapped,
        found: list[Observation],
        *,
        gap: bool,
        anew: bool,
    ) -> Step:
        tick = _tick(scrape.time_ms, mapped)
        grown = growth(tick, state.memory)
        assert grown is not None
        verdict = self._verdict(state, mapped, grown, scrape, gap=gap, anew=anew)
        if verdict.change is Change.RESTART:
            grown = growth(tick, state.memory, fresh_process=True)
            assert grown is not None
        known = launches.with_models(verdict.known, mapped)
        found += measurements(tick, msgspec.structs.replace(verdict, known=known), grown)
        self.tally.launches += verdict.change is not Change.SAME
        self.tally.version = f"{engine_named(known.launch.engine).title} {known.launch.engine_version}"
        place = state.place
        if grown.fell or verdict.change is not Change.SAME:
            place = _replaced(place, changed_ms=scrape.time_ms)
        return Step(_replaced(state, place=place, memory=grown.memory, known=known), found)

    def _verdict(
        self, state: State, mapped: Mapped, grown: Advance, scrape: Scrape, *, gap: bool, anew: bool
    ) -> Verdict:
        known = state.known
        different = known is not None and launches.looks_different(known, mapped)
        if known is not None and not (gap or different or grown.all_fell or anew):
            return Verdict(change=Change.SAME, known=known)
        # A process that started since is another one, whatever its counters say.
        fell, compared = (1, 1) if anew else (grown.fell, grown.compared)
        evidence = Evidence(fell=fell, compared=compared, gap=gap)
        verdict = launches.by_metrics(known, mapped, evidence, scrape.time_ms)
        if verdict.change is Change.SAME:
            return verdict
        return msgspec.structs.replace(verdict, known=_described(verdict.known, scrape))

    def _up(self, scrape: Scrape) -> list[Observation]:
        if scrape.up not in (0.0, 1.0):
            return []
        labels = {"source": SOURCE}
        return [Level(metric="scrape.up", labels=labels, time_ms=scrape.time_ms, value=scrape.up)]


def _described(known: Known, scrape: Scrape) -> Known:
    """Keep with the launch what the scraper says of its target: on the series it would only split them."""
    labels = {
        f"prometheus.{name}": redact_text(value[:_MAX_LABEL_CHARACTERS]) for name, value in scrape.witness
    }
    launch = msgspec.structs.replace(known.launch, environment=labels)
    return msgspec.structs.replace(known, launch=launch)


def _tick(time_ms: int, mapped: Mapped) -> Tick:
    health = SourceHealth(source=SOURCE, time_ms=time_ms, state=HealthState.OK, url="", duration_seconds=0.0)
    return Tick(MetricsReading(health, mapped))


def _is_gap(place: Place, scrape: Scrape) -> bool:
    return place.failed or place.last_ms is None or scrape.time_ms - place.last_ms > place.patience_ms


def _new_start(place: Place, scrape: Scrape) -> bool:
    return place.started is not None and scrape.started is not None and scrape.started > place.started


def _after(place: Place, scrape: Scrape, *, exact: bool, is_change: bool) -> Place:
    interval = None if place.last_ms is None or not exact else scrape.time_ms - place.last_ms
    known = [each for each in (interval, place.interval_ms) if each]
    return _replaced(
        place,
        done_to_ms=scrape.time_ms,
        first_ms=scrape.time_ms if place.first_ms is None else place.first_ms,
        last_ms=scrape.time_ms,
        failed=False,
        changed_ms=scrape.time_ms if is_change else place.changed_ms,
        interval_ms=min(known, default=None),
        witness=scrape.witness,
        started=place.started if scrape.started is None else scrape.started,
    )


def is_of(place: Place, scrape: Scrape) -> bool:
    """Return whether a scrape is to be taken: of the witness so far, or of another once that is silent."""
    if not place.witness or agrees(place.witness, scrape.witness):
        return scrape.is_good or bool(place.witness)
    if not scrape.is_good or place.last_ms is None:
        return False
    return scrape.time_ms - place.last_ms > place.patience_ms


def agrees(one: tuple[tuple[str, str], ...], other: tuple[tuple[str, str], ...]) -> bool:
    """Return whether two witnesses are one, as far as both have a label."""
    first, second = dict(one), dict(other)
    shared = first.keys() & second.keys()
    return bool(shared) and all(first[name] == second[name] for name in shared)


def _replaced(what: T, **changes: object) -> T:
    return msgspec.structs.replace(what, **changes)
