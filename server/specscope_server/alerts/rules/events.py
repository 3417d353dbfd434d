"""Events as points: how many of some kinds happened in each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.reads import Frame, Grid
from specscope_server.kit.signal import SignalSeries, Why
from specscope_server.models import Event

MAX_EVENTS = 20_000
MAX_CHANGES, MAX_TEXT = 20, 200


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
        statement = (
            select(Event)
            .where(Event.server_id.in_(ids), Event.time_ms >= query.begin_ms, Event.time_ms < query.to_ms)
            .order_by(Event.time_ms.desc())
            .limit(MAX_EVENTS)
        )
        found: dict[int, list[tuple[Event, Any]]] = {}
        for event in session.scalars(statement):
            detail = orjson.loads(event.detail)
            if self._is_meant(event, detail):
                found.setdefault(event.server_id, []).append((event, detail))
        size = len(frame.times_ms)
        return Grid([
            _series(server.name, found.get(server.id, []), frame, self.window_ms) for server in frame.servers
        ], size, "events", "events", "/sources")  # fmt: skip

    def _is_meant(self, event: Event, detail: Any) -> bool:
        if self.changed_only and not (isinstance(detail, dict) and detail.get("changes")):
            return False
        return any(fnmatchcase(event.kind, kind) for kind in self.kinds)


def _series(name: str, found: Sequence[tuple[Event, Any]], frame: Frame, window_ms: int) -> SignalSeries:
    times = np.sort(np.array([event.time_ms for event, _ in found], dtype=np.int64))
    ends = frame.times_ms
    count = np.searchsorted(times, ends) - np.searchsorted(times, ends - window_ms)
    value = count.astype(np.float64)
    note, evidence = "", {}
    if found:
        event, detail = found[0]
        note = event.message[:400]
        evidence = {"event": event.kind, "time_ms": event.time_ms, "changes": _changes(detail)}
    return SignalSeries(
        {"server": name}, value, np.full(len(ends), Why.OK, dtype=np.uint8), value, note=note,
        evidence=evidence,
    )  # fmt: skip


def _changes(detail: Any) -> dict[str, list[str]]:
    """Return the changed settings, shortened: they are untrusted."""
    changes = detail.get("changes") if isinstance(detail, dict) else None
    if not isinstance(changes, dict):
        return {}
    return {
        str(name)[:100]: [str(value)[:MAX_TEXT] for value in pair][:2]
        for name, pair in list(changes.items())[:MAX_CHANGES]
        if isinstance(pair, list)
    }
