"""Whole hours of raw samples kept in memory, so that a dashboard that refreshes does not read them again.

An hour's 1-hour roll-up row is its version: samples are only ever added, and each one changes the row in the
same transaction. So an entry is used only while the row is what it was when the samples were read, whoever
wrote since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from specscope_server.store.rollup import HOUR_MS

RawRows: TypeAlias = NDArray[np.float64]
"""Rows (time_ms, value, span_ms), ascending in time."""
Version: TypeAlias = tuple[float, ...]
"""(n, sum, min, max, last, last_ms, span_ms) of the hour."""
Fetch: TypeAlias = Callable[[int, int], RawRows]
"""Reads [from_ms, to_ms) from the database."""

MAX_ROWS = 2_000_000
"""Of all hours together; 24 bytes each."""


class HourCache:
    """Least recently used hours go first. Safe to use from several threads."""

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._max_rows = max_rows
        self._rows = 0
        self._hours: OrderedDict[tuple[int, int], tuple[Version, RawRows]] = OrderedDict()
        self._lock = threading.Lock()

    def read(
        self, series_id: int, from_ms: int, to_ms: int, versions: Mapping[int, Version], fetch: Fetch
    ) -> RawRows:
        """Return the series' samples in [from, to); ``versions`` maps an hour's start to its roll-up."""
        hours = range(from_ms - from_ms % HOUR_MS, to_ms, HOUR_MS)
        known = {hour: self._get(series_id, hour, versions.get(hour)) for hour in hours}
        for first, last in _runs([hour for hour, rows in known.items() if rows is None]):
            rows = fetch(first, last + HOUR_MS)
            cuts = np.searchsorted(rows[:, 0], range(first, last + 2 * HOUR_MS, HOUR_MS))
            for hour, (start, end) in zip(range(first, last + 1, HOUR_MS), pairwise(cuts), strict=True):
                known[hour] = rows[start:end]
                self._put(series_id, hour, versions.get(hour), rows[start:end])
        whole = np.concatenate([rows for rows in known.values() if rows is not None])
        begin, end = np.searchsorted(whole[:, 0], [from_ms, to_ms])
        return whole[begin:end]

    def _get(self, series_id: int, hour: int, version: Version | None) -> RawRows | None:
        with self._lock:
            found = self._hours.get((series_id, hour))
            if found is None or version is None or found[0] != version:
                return None
            self._hours.move_to_end((series_id, hour))
            return found[1]

    def _put(self, series_id: int, hour: int, version: Version | None, rows: RawRows) -> None:
        if version is None or len(rows) != version[0]:
            return  # written in between: these rows are not of that version
        with self._lock:
            self._rows += len(rows) - self._forget((series_id, hour))
            self._hours[series_id, hour] = (version, rows.copy())  # a view would keep the whole read alive
            while self._rows > self._max_rows:
                self._rows -= self._forget(next(iter(self._hours)))

    def _forget(self, key: tuple[int, int]) -> int:
        gone = self._hours.pop(key, None)
        return 0 if gone is None else len(gone[1])


_caches: WeakKeyDictionary[Engine, HourCache] = WeakKeyDictionary()


def cache_of(engine: Engine) -> HourCache:
    """Return the cache of this engine's database; it goes with the engine."""
    return _caches.setdefault(engine, HourCache())


def _runs(hours: list[int]) -> list[tuple[int, int]]:
    """Return (first, last) of each run of consecutive hours."""
    runs: list[tuple[int, int]] = []
    for hour in hours:
        if runs and runs[-1][1] + HOUR_MS == hour:
            runs[-1] = (runs[-1][0], hour)
        else:
            runs.append((hour, hour))
    return runs
