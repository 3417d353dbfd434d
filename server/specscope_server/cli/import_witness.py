"""A log is imported into a server whose metrics were scraped over the same time: nothing is told twice.

The stored launch that was scraped is the one the log speaks of, and its scraped values stand. The log adds
what the scrape does not have: other metrics, the stretches in which nothing was scraped, and events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, select

from specscope_collectors.observations import Event, Increment, Launch, Level, Observation, SpeculativeConfig
from specscope_collectors.sources.sglang_log.witness import (
    SEED,
    compatible,
    is_same_start,
    left_to_say,
    since,
)
from specscope_server.kit.versions import LOG_LINES
from specscope_server.models import Event as EventRow
from specscope_server.models import Launch as LaunchRow
from specscope_server.models import SampleMinute, Series, Server

MINUTE_MS = 60_000
BEFORE_MS, AFTER_MS = 60_000, 60_000
"""How far the lines of a launch may lie before its first scrape and behind its last one."""
CONCLUSION = "rate_definition"

_Shape = tuple[str, frozenset[str]]
"""Metric and names of labels: the series of a log have fewer labels than scraped ones."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """A stored launch that is known from the server itself."""

    id: int
    first_ms: int
    last_ms: int
    launch: Launch


@dataclass(frozen=True, slots=True)
class Rest:
    """What of a portion is stored, and how many values are left out because the scrape has them."""

    launch_key: str | None
    observations: tuple[Observation, ...]
    left_out: int = 0


class StoredWitness:
    """Asks the store what it has of one server."""

    def __init__(self, engine: Engine, server: str) -> None:
        self._engine = engine
        self._server = server
        self._begun: dict[str, Launch] = {}
        """Launches of the log, which are stored only if something is left to say of them."""
        self._sent: set[str] = set()
        self._scraped: list[Scraped] | None = None

    def note(self, observations: Sequence[Observation]) -> None:
        """Learn of launches from a portion that was stored before."""
        self._begun.update((record.key, record) for record in observations if isinstance(record, Launch))

    def rest(self, launch_key: str | None, observations: Sequence[Observation]) -> Rest:
        """Return what is left to say of one portion."""
        self.note(observations)
        with self._engine.connect() as connection:
            if self._scraped is None:
                self._scraped = _scraped(connection, self._server)
            observations = self._without_known_events(connection, observations)
            levels = [record for record in observations if isinstance(record, Level | Increment)]
            found = self._covering(launch_key, observations)
            key = found.launch.key if found else launch_key
            observations = [each for each in observations if not self._is_concluded(connection, key, each)]
            if found is None:
                return self._own(launch_key, observations, has_levels=bool(levels))
            model = found.launch.served_model_name or found.launch.model
            said = left_to_say(observations, (), model)
            covered = _covered(connection, found.id, levels) if levels else {}
        kept = tuple(record for record in said if not _is_covered(record, covered))
        begun = self._begun.get(launch_key or "")
        is_earlier = begun is not None and launch_key not in self._sent and begun.time_ms < found.first_ms
        if begun is not None and is_earlier and is_same_start(begun, found.launch):
            self._sent.add(begun.key)
            return Rest(found.launch.key, (since(found.launch, begun), *kept), len(said) - len(kept))
        return Rest(found.launch.key, kept, len(said) - len(kept))

    def _own(self, launch_key: str | None, observations: Sequence[Observation], *, has_levels: bool) -> Rest:
        """A launch with nothing but its beginning waits: the scraped one may turn out to be it."""
        launch = self._begun.get(launch_key or "")
        if launch is None or launch.key in self._sent or not self._scraped:
            return Rest(launch_key, tuple(observations))
        if not has_levels:
            return Rest(None, left_to_say(observations, (), None))
        self._sent.add(launch.key)
        return Rest(launch_key, (launch, *(each for each in observations if not isinstance(each, Launch))))

    def _is_concluded(self, connection: Connection, key: str | None, record: Observation) -> bool:
        """Whether the same definition of the printed rate was told of this launch before."""
        if not isinstance(record, Event) or record.kind != CONCLUSION:
            return False
        query = (
            select(EventRow.detail)
            .join(LaunchRow, LaunchRow.id == EventRow.launch_id)
            .join(Server, Server.id == LaunchRow.server_id)
            .where(Server.name == self._server, LaunchRow.key == key, EventRow.kind == CONCLUSION)
            .order_by(EventRow.time_ms.desc(), EventRow.id.desc())
        )
        before = connection.execute(query).scalars().first()
        names = ("definition", "draft_tokens")
        told = orjson.loads(before) if before is not None else {}
        return before is not None and all(told.get(name) == record.detail.get(name) for name in names)

    def _covering(self, launch_key: str | None, observations: Sequence[Observation]) -> Scraped | None:
        """Return the scraped launch in whose time most of the portion lies."""
        times = [record.time_ms for record in observations if isinstance(record, Level | Increment)] or [
            record.time_ms for record in observations if isinstance(record, Event)
        ]
        begun = self._begun.get(launch_key or "")
        candidates = [
            (sum(each.first_ms - BEFORE_MS <= time_ms <= each.last_ms + AFTER_MS for time_ms in times), each)
            for each in self._scraped or ()
            if compatible(begun, each.launch) and _may_be(begun, each)
        ]
        same = [each for each in self._scraped or () if is_same_start(begun, each.launch)]
        if same:
            return same[-1]
        count, best = max(candidates, key=lambda pair: pair[0], default=(0, None))
        return best if count else None

    def _without_known_events(
        self, connection: Connection, observations: Sequence[Observation]
    ) -> Sequence[Observation]:
        """Leave out events that an import, or the following of the log, has stored before."""
        events = [record for record in observations if isinstance(record, Event)]
        if not events:
            return observations
        known = _known_events(connection, self._server, events)
        return [
            record
            for record in observations
            if not isinstance(record, Event) or _identity(record) not in known
        ]


def _may_be(begun: Launch | None, scraped: Scraped) -> bool:
    """A launch whose start the log shows cannot have been scraped before it."""
    return begun is None or not begun.config or scraped.first_ms >= begun.time_ms - BEFORE_MS


def _scraped(connection: Connection, server: str) -> list[Scraped]:
    query = (
        select(LaunchRow)
        .join(Server, Server.id == LaunchRow.server_id)
        .where(Server.name == server, LaunchRow.version_source.is_not(None))
        .where(LaunchRow.version_source != LOG_LINES)
        .order_by(LaunchRow.first_seen_ms)
    )
    columns = LaunchRow.__table__.columns
    rows = connection.execute(query.with_only_columns(*columns)).mappings()
    return [_scraped_of(row) for row in rows]


def _scraped_of(row: Any) -> Scraped:
    launch = Launch(
        key=row["key"],
        time_ms=row["first_seen_ms"],
        engine=row["engine"],
        model=row["model"],
        served_model_name=row["served_model_name"],
        config={SEED: orjson.loads(row["config"]).get(SEED)},
        speculative=SpeculativeConfig(
            algorithm=row["algorithm"],
            num_draft_tokens=row["num_draft_tokens"],
            draft_model=row["draft_model"],
            adaptive=row["adaptive"],
        ),
    )
    return Scraped(row["id"], row["first_seen_ms"], row["last_seen_ms"], launch)


def _covered(
    connection: Connection, launch_id: int, levels: Sequence[Level | Increment]
) -> dict[_Shape, set[int]]:
    """Return the minutes in which the launch has values of each metric, by the names of their labels."""
    times = [level.time_ms for level in levels]
    query = (
        select(Series.metric, Series.labels, SampleMinute.time_ms)
        .join(SampleMinute, SampleMinute.series_id == Series.id)
        .where(Series.launch_id == launch_id, Series.metric.in_(sorted({level.metric for level in levels})))
        .where(SampleMinute.time_ms >= min(times) - 2 * MINUTE_MS)
        .where(SampleMinute.time_ms <= max(times) + 2 * MINUTE_MS)
    )
    found: dict[_Shape, set[int]] = defaultdict(set)
    for metric, labels, time_ms in connection.execute(query):
        found[metric, frozenset(orjson.loads(labels))].add(time_ms // MINUTE_MS)
    return found


def _is_covered(record: Observation, covered: dict[_Shape, set[int]]) -> bool:
    """Whether a scrape gave this metric in the minute of the value, the one before or the one after."""
    if not isinstance(record, Level | Increment):
        return False
    minute, own = record.time_ms // MINUTE_MS, frozenset(record.labels)
    return any(
        metric == record.metric and names != own and not minutes.isdisjoint((minute - 1, minute, minute + 1))
        for (metric, names), minutes in covered.items()
    )


def _known_events(connection: Connection, server: str, events: Sequence[Event]) -> set[tuple[object, ...]]:
    times = [event.time_ms for event in events]
    query = (
        select(EventRow.kind, EventRow.time_ms, EventRow.message)
        .join(Server, Server.id == EventRow.server_id)
        .where(Server.name == server, EventRow.time_ms.between(min(times), max(times)))
    )
    return {tuple(row) for row in connection.execute(query)}


def _identity(event: Event) -> tuple[object, ...]:
    return event.kind, event.time_ms, event.message
