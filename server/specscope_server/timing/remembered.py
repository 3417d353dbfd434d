"""Answers that a page and its charts share, so that each is computed once.

A page asks for the summary, and each of its charts asks again a moment later. An answer is used again for the
same question while nothing was stored since: every batch raises its collector's sequence.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState
from specscope_server.models import Collector

Answer = TypeVar("Answer")

MOST = 64
"""Answers kept; the least recently used go first."""
SAME_MS = 5_000
"""A range up to now that moved on by less than this is the same question, if nothing was stored since."""


@dataclass(slots=True)
class _Entry:
    """One answer, computed by whoever holds the lock first."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    is_there: bool = False


class Remembered:
    """Answers of one database. Safe to use from several threads; an error is not remembered."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def once(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        """Return the answer for a key, computed by the first who asks; others wait for it."""
        entry = self._entry(key)
        with entry.lock:
            if not entry.is_there:
                entry.value, entry.is_there = compute(), True
            return cast(Answer, entry.value)

    def _entry(self, key: Hashable) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
            return entry


_OF_ENGINE: WeakKeyDictionary[Engine, Remembered] = WeakKeyDictionary()
_LOCK = threading.Lock()


def once(
    session: Session,
    state: AppState,
    question: tuple[Hashable, ...],
    span: TimeRange,
    compute: Callable[[], Answer],
) -> Answer:
    """Return the answer to a question about a range; what is returned is shared, and not to be changed."""
    with _LOCK:
        known = _OF_ENGINE.setdefault(state.engine, Remembered())
    return known.once((*question, *range_key(span), *data_version(session)), compute)


def range_key(span: TimeRange) -> tuple[Hashable, ...]:
    """Return what tells ranges apart: its ends, or of one up to now its length, and when it is asked."""
    shape = (span.step_ms, span.points, span.min_step_ms)
    if span.to_ms != span.now_ms:
        return (*shape, span.from_ms, span.to_ms, span.now_ms // SAME_MS)
    return (*shape, span.to_ms - span.from_ms, span.now_ms // SAME_MS)


def data_version(session: Session) -> tuple[Hashable, ...]:
    """Return what changes with every batch that is stored."""
    columns = func.count(), func.sum(Collector.sequence), func.max(Collector.updated_ms)
    return tuple(session.execute(select(*columns)).one())
