"""The newest samples of series that are read again every few seconds, kept between the reads.

A tape holds all samples of a series from some moment on. Samples are only ever added, and each one is counted
by its 10-minute roll-up in the same transaction. So a tape is brought up to date by the samples after its
own last one, and it is whole if in each ten minutes it has as many as the roll-up counts: a sample that came
late, of whichever process, makes it one too few, and the tape is read anew. Where retention has removed some
that it would begin with, a series has none, and whoever reads it plans which roll-ups stand in.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import Connection, Engine

from specscope_server.store import dialects
from specscope_server.store.rollup import TEN_MINUTES_MS
from specscope_server.store.rows import RAW, Matrix, as_matrix, by_place, fetch

MAX_ROWS = 4_000_000
"""Of all tapes together; 24 bytes each."""
UNUSED_MS = 600_000
"""A tape that was not read for so long goes."""
END_MS = 1 << 62

Held: TypeAlias = tuple[int, Matrix]
"""(from when on, all samples since: columns of `RAW`, ascending in time)."""


@dataclass(slots=True)
class Tape:
    """All samples of a series from ``from_ms`` (full ten minutes) on."""

    from_ms: int
    span_ms: int
    """How far back it is read."""
    rows: Matrix
    counts: Counter[int]
    """Start of ten minutes → samples in it."""
    used_ms: int = 0

    @property
    def last_ms(self) -> int:
        """Return the time of the newest sample, or the moment before the beginning."""
        return int(self.rows[-1, 0]) if len(self.rows) else self.from_ms - 1

    def add(self, rows: Matrix) -> None:
        """Append samples that are later than all."""
        self.rows = np.concatenate((self.rows, rows))
        self.counts.update(_starts(rows))

    def cut(self, from_ms: int) -> None:
        """Forget what lies before full ten minutes."""
        if from_ms > self.from_ms:
            self.from_ms = from_ms
            self.rows = self.rows[self.rows[:, 0].searchsorted(from_ms) :]
            for start in [start for start in self.counts if start < from_ms]:
                del self.counts[start]

    def is_whole(self, counts: Mapping[int, int]) -> bool:
        """Tell whether it has as many samples as are counted."""
        return self.counts == {start: n for start, n in counts.items() if start >= self.from_ms}


class Tapes:
    """Tapes of one database; those not read for longest go first. Safe to use from several threads."""

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._lock = threading.Lock()
        self._max_rows = max_rows
        self._rows = 0
        self._tapes: OrderedDict[int, Tape] = OrderedDict()

    def begins(self, now_ms: int) -> dict[int, int]:
        """Return series id → from when on it is read now, of each tape."""
        with self._lock:
            return {series_id: now_ms - tape.span_ms for series_id, tape in self._tapes.items()}

    def used(self, ids: Iterable[int], now_ms: int) -> None:
        """Note that these were read."""
        with self._lock:
            for series_id in ids:
                if series_id in self._tapes:
                    self._tapes[series_id].used_ms = now_ms
                    self._tapes.move_to_end(series_id)

    def update(self, connection: Connection, begins_ms: Mapping[int, int], now_ms: int) -> dict[int, Held]:
        """Return id → what its tape holds now, of those series that can have one.

        ``begins_ms``: series id → from when on it is read.
        """
        with self._lock:
            taken = {one: tape for one in begins_ms if (tape := self._take(one)) is not None}
            spans_ms = {
                one: max(now_ms - begin_ms, taken[one].span_ms if one in taken else 0)
                for one, begin_ms in begins_ms.items()
            }
            known = {one: tape for one, tape in taken.items() if tape.from_ms <= begins_ms[one]}
            whole = _whole(connection, _followed(connection, known))
            anew = {one: span_ms for one, span_ms in spans_ms.items() if one not in whole}
            whole |= _whole(connection, _read(connection, anew, now_ms))
            for one, tape in whole.items():
                tape.span_ms = spans_ms[one]
                self._put(one, tape, now_ms)
            self._tidy(now_ms)
        return {one: (tape.from_ms, tape.rows) for one, tape in whole.items()}

    def _take(self, series_id: int) -> Tape | None:
        tape = self._tapes.pop(series_id, None)
        self._rows -= 0 if tape is None else len(tape.rows)
        return tape

    def _put(self, series_id: int, tape: Tape, now_ms: int) -> None:
        tape.cut(_full(now_ms - tape.span_ms))
        tape.used_ms = tape.used_ms or now_ms
        self._tapes[series_id] = tape
        self._rows += len(tape.rows)

    def _tidy(self, now_ms: int) -> None:
        """Let those go that nobody reads any more, and the oldest ones of too many."""
        while self._tapes:
            series_id, oldest = next(iter(self._tapes.items()))
            if self._rows <= self._max_rows and abs(now_ms - oldest.used_ms) <= UNUSED_MS:
                return
            self._take(series_id)


def _followed(connection: Connection, tapes: dict[int, Tape]) -> dict[int, Tape]:
    """Return the tapes with what came after their last sample."""
    if tapes:
        found = dialects.fetch_after(connection, {one: tape.last_ms for one, tape in tapes.items()})
        place, rows = by_place(as_matrix(found, 4), list(tapes))
        cuts = np.searchsorted(place, np.arange(len(tapes) + 1))
        for number, tape in enumerate(tapes.values()):
            if cuts[number] < cuts[number + 1]:
                tape.add(rows[cuts[number] : cuts[number + 1]])
    return tapes


def _read(connection: Connection, spans_ms: Mapping[int, int], now_ms: int) -> dict[int, Tape]:
    """Return new tapes of series, each as far back as it is read."""
    if not spans_ms:
        return {}
    begin_ms = _full(now_ms - max(spans_ms.values()))
    place, rows = fetch(connection, "sample", RAW, list(spans_ms), (begin_ms, END_MS), 0)
    cuts = np.searchsorted(place, np.arange(len(spans_ms) + 1))
    found = {}
    for number, (series_id, span_ms) in enumerate(spans_ms.items()):
        own = rows[cuts[number] : cuts[number + 1]].copy()  # a view would keep the whole read alive
        found[series_id] = Tape(begin_ms, span_ms, own, Counter(_starts(own)))
    return found


def _whole(connection: Connection, tapes: Mapping[int, Tape]) -> dict[int, Tape]:
    """Return those tapes that have every sample."""
    if not tapes:
        return {}
    counts: dict[int, dict[int, int]] = {}
    begin_ms = min(tape.from_ms for tape in tapes.values())
    columns = "time_ms, n"
    for series_id, start_ms, count in dialects.fetch_many(
        connection, "sample_10m", columns, list(tapes), begin_ms, END_MS
    ):
        counts.setdefault(series_id, {})[start_ms] = count
    return {one: tape for one, tape in tapes.items() if tape.is_whole(counts.get(one, {}))}


def _full(time_ms: int) -> int:
    return time_ms - time_ms % TEN_MINUTES_MS


def _starts(rows: Matrix) -> list[int]:
    times = rows[:, 0].astype(np.int64)
    starts: list[int] = (times - times % TEN_MINUTES_MS).tolist()
    return starts


_kept: WeakKeyDictionary[Engine, Tapes] = WeakKeyDictionary()


def tapes_of(engine: Engine) -> Tapes:
    """Return the tapes of this engine's database; they go with the engine."""
    return _kept.setdefault(engine, Tapes())
