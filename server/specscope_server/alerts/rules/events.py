"""Events as points: how many of some kinds happened in each window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.arrivals import arrivals
from specscope_server.alerts.rules.reads import Frame, Grid
from specscope_server.kit.signal import SignalSeries, Why
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import Event
from specscope_server.servers.statistics import config_diff

MAX_EVENTS = 20_000
MAX_LATE = 500
"""Events that came late and are looked at at once: a database takes only so many ids."""
MAX_CHANGES, MAX_NAME, MAX_TEXT = 50, 100, 200
NAMED, SHORT, MAX_WORDS = 8, 60, 800
"""Changes that the words name, and characters of one value and of all."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event in words, and as evidence."""

    time_ms: int
    """From when it counts: when it happened, or was seen first if that was late."""
    words: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EventSeries(SignalSeries):
    """How many happened in each window, and what."""

    told: Sequence[Told] = ()
    """Oldest first."""
    times_ms: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def newest(self, end_ms: int) -> Told:
        """Return the last one before a time. There must be one."""
        return self.told[int(np.searchsorted(self.times_ms, end_ms)) - 1]


@dataclass(frozen=True, slots=True)
class Events:
    """Events whose kind matches one of ``kinds``."""

    kinds: tuple[str, ...]
    changed_only: bool
    window_ms: int

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return a series for each server; 0 where nothing happened."""
        query = frame.query(self.window_ms)
        ids = [server.id for server in frame.servers]
        late = _late(session, frame, query.begin_ms)
        in_window = (Event.time_ms >= query.begin_ms) & (Event.time_ms < query.to_ms)
        statement = (
            select(Event)
            .where(Event.server_id.in_(ids), in_window | Event.id.in_(late))
            .order_by(Event.time_ms.desc())
            .limit(MAX_EVENTS)
        )
        found: dict[int, list[Told]] = {}
        for event in session.scalars(statement):
            detail = orjson.loads(event.detail)
            if self._is_meant(event, detail):
                found.setdefault(event.server_id, []).append(_told(event, detail, late.get(event.id)))
        size = len(frame.times_ms)
        series = [
            _series(server.name, found.get(server.id, []), frame, self.window_ms) for server in frame.servers
        ]
        return Grid(series, size, "events", "events", "/sources", frame.times_ms)

    def _is_meant(self, event: Event, detail: Any) -> bool:
        if self.changed_only and not (isinstance(detail, dict) and detail.get("changes")):
            return False
        return any(fnmatchcase(event.kind, kind) for kind in self.kinds)


def _late(session: Session, frame: Frame, begin_ms: int) -> dict[int, int]:
    """Return id → when it was seen first, of events that came late and count now; of the past, none."""
    if len(frame.times_ms) > 1:
        return {}
    found = arrivals(session, frame.now_ms)
    newest = sorted(found, key=lambda number: found[number])[-MAX_LATE:]
    return {number: found[number] for number in newest if begin_ms <= found[number]}


def _series(name: str, found: Sequence[Told], frame: Frame, window_ms: int) -> EventSeries:
    told = sorted(found, key=lambda one: one.time_ms)
    times = np.array([one.time_ms for one in told], dtype=np.int64)
    ends = frame.times_ms
    count = np.searchsorted(times, ends) - np.searchsorted(times, ends - window_ms)
    value = count.astype(np.float64)
    return EventSeries(
        {"server": name}, value, np.full(len(ends), Why.OK, dtype=np.uint8), value, told=told, times_ms=times,
    )  # fmt: skip


def _told(event: Event, detail: Any, seen_ms: int | None) -> Told:
    changes = _changes(detail)
    words = event.message
    if changes:  # named here again: the message names few, and the values as a program would
        ordered = sorted(changes, key=lambda name: not name.startswith("speculative"))
        named = [
            " ".join((name, _short(changes[name][0]), "→", _short(changes[name][1]))) for name in ordered
        ]
        more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        words = f"{event.message.partition(': ')[0]}: {', '.join(named[:NAMED])}{more}"
    evidence = {"event": event.kind, "time_ms": event.time_ms, "changes": changes}
    if seen_ms is None:
        return Told(event.time_ms, words[:MAX_WORDS], evidence)
    minutes = round((seen_ms - event.time_ms) / 60_000)
    words = f"{words[:MAX_WORDS]} (it happened at {to_iso(event.time_ms)} and was told {minutes} min later)"
    return Told(seen_ms - 1, words, {**evidence, "seen_ms": seen_ms})


def _changes(detail: Any) -> dict[str, list[str]]:
    """Return changed settings → [old, new], shortened: they are untrusted."""
    changes = detail.get("changes") if isinstance(detail, dict) else None
    if not isinstance(changes, dict):
        return {}
    pairs = {
        str(name): pair for name, pair in list(changes.items())[:MAX_CHANGES]
        if isinstance(pair, list) and len(pair) == 2
    }  # fmt: skip
    sides = [{name: pair[place] for name, pair in pairs.items()} for place in (0, 1)]
    added, removed, changed = config_diff(sides[0], sides[1])  # of a nested setting, only what differs in it
    found = {**changed, **{name: (None, new) for name, new in added.items()}}
    found |= {name: (old, None) for name, old in removed.items()}
    return {
        name[-MAX_NAME:]: [_text(old), _text(new)] for name, (old, new) in list(found.items())[:MAX_CHANGES]
    }


def _text(value: Any) -> str:
    return "not set" if value is None else str(value)[:MAX_TEXT]


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[: SHORT - 1]}…"
