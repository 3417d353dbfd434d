"""When events reached the store, where that was long after they happened.

Sources that were cut off, and a server that was down, bring events that no window of a few minutes holds any
more when they are seen first. Such an event counts from the moment at which it was seen, once. Rows carry no
such moment, but their ids grow: what has a higher id than all at the last look is new. The first look of a
process takes for new what happened since the last evaluation of any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import Session

from specscope_server.models import Event, Lease

MIN_LATE_MS = 60_000
"""What is seen sooner is on time."""
MAX_LATE_MS = 6 * 3_600_000
"""What is older than that when it is seen first is history."""
MAX_SILENT_MS = 120_000
"""After a longer time without a look another process may have evaluated; begin anew."""
FRESH_MS = 45_000
"""An evaluation notes as its due time three of its usual intervals from then."""
DUE = "alerts.evaluation.due"
MAX_NEW = 20_000

_looks: WeakKeyDictionary[Engine, Look] = WeakKeyDictionary()
_lock = Lock()


@dataclass(slots=True)
class Look:
    """What the looks at one store's events found."""

    last_ms: int
    last_id: int
    seen_ms: dict[int, int] = field(default_factory=dict)
    """Id of an event that came late → when it was seen first."""


def arrivals(session: Session, now_ms: int) -> dict[int, int]:
    """Look at what is new now; return late event's id → when it was seen first, of the last hours."""
    engine = session.get_bind()
    assert isinstance(engine, Engine)
    with _lock:
        look = _looks.get(engine)
        if look is None or not look.last_ms <= now_ms <= look.last_ms + MAX_SILENT_MS:
            look = _looks[engine] = _first(session, now_ms)
        else:
            _note(session, look, Event.id > look.last_id, now_ms)
        look.last_ms = now_ms
        look.seen_ms = {
            number: seen_ms for number, seen_ms in look.seen_ms.items() if seen_ms > now_ms - MAX_LATE_MS
        }
        return dict(look.seen_ms)


def _first(session: Session, now_ms: int) -> Look:
    look = Look(now_ms, session.scalar(select(func.max(Event.id))) or 0)
    due_ms = session.scalar(select(Lease.until_ms).where(Lease.name == DUE))
    if due_ms is not None:
        _note(session, look, Event.time_ms >= due_ms - FRESH_MS, now_ms)
    return look


def _note(session: Session, look: Look, is_new: ColumnElement[bool], now_ms: int) -> None:
    late = (Event.time_ms < now_ms - MIN_LATE_MS) & (Event.time_ms >= now_ms - MAX_LATE_MS)
    newest = session.scalar(select(func.max(Event.id)).where(is_new))
    rows = session.scalars(select(Event.id).where(is_new, late).order_by(Event.id.desc()).limit(MAX_NEW))
    look.seen_ms |= dict.fromkeys(rows, now_ms)
    look.last_id = max(look.last_id, newest or 0)
