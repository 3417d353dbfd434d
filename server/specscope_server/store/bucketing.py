"""Turn rows of raw samples and roll-ups into dense arrays per series.

Aggregating in SQL (GROUP BY) is no faster than fetching the rows: the group is an expression, so SQLite sorts
for it; and rows give the last value, which GROUP BY does not (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from specscope_collectors.catalogue import CATALOGUE, Kind
from specscope_server.kit.timerange import Window
from specscope_server.models import Base
from specscope_server.store import dialects
from specscope_server.store.buckets import Buckets, SeriesRef
from specscope_server.store.hour_cache import RawRows, Version, cache_of
from specscope_server.store.resolution import SUFFIX, Segment
from specscope_server.store.rollup import HOUR_MS, group_starts

_ROLLUP_COLUMNS = "time_ms, n, sum, min, max, last, span_ms"

FloatMatrix = NDArray[np.float64]
"""Rows of ``_ROLLUP_COLUMNS``. Times in ms and counts are exact in a float64 up to 2^53."""


def bucket_samples(
    connection: Connection, series: Sequence[SeriesRef], window: Window, segments: Sequence[Segment]
) -> dict[int, Buckets]:
    """Return the buckets of those series that have any sample in the segments."""
    parts: dict[int, list[tuple[Segment, FloatMatrix]]] = {ref.id: [] for ref in series}
    for segment in segments:
        versions = _versions(connection, series, segment)
        for ref in series:
            rows = _read(connection, ref, segment, versions.get(ref.id, {}))
            if len(rows):
                parts[ref.id].append((segment, rows))
    return {series_id: _to_buckets(found, window) for series_id, found in parts.items() if found}


def raw_samples(
    connection: Connection, series: Sequence[SeriesRef], from_ms: int, to_ms: int
) -> dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return (times, values) of the single samples of those series that have any in [from, to)."""
    segment = Segment(0, from_ms, to_ms)
    versions = _versions(connection, series, segment)
    rows = {ref.id: _read(connection, ref, segment, versions.get(ref.id, {})) for ref in series}
    return {key: (own[:, 0].astype(np.int64), own[:, 2]) for key, own in rows.items() if len(own)}


def _versions(
    connection: Connection, series: Sequence[SeriesRef], segment: Segment
) -> dict[int, dict[int, Version]]:
    """Return series id → hour → its roll-up, where that pays: for hours of raw samples."""
    if segment.resolution_ms or segment.to_ms - segment.from_ms < HOUR_MS:
        return {}
    found: dict[int, dict[int, Version]] = {}
    from_ms = segment.from_ms - segment.from_ms % HOUR_MS
    hours = Base.metadata.tables["sample_1h"]
    condition = "AND time_ms >= ? AND time_ms < ?"
    ids = [ref.id for ref in series]
    for series_id, hour, *version in dialects.select_by_ids(
        connection, hours, ids, condition, from_ms, segment.to_ms
    ):
        found.setdefault(series_id, {})[hour] = tuple(version)
    return found


def _read(
    connection: Connection, ref: SeriesRef, segment: Segment, versions: Mapping[int, Version]
) -> FloatMatrix:
    """Read rows in order of time; raw samples become roll-ups of one."""
    if segment.resolution_ms:
        table = f"sample{SUFFIX[segment.resolution_ms]}"
        return _fetch(connection, table, _ROLLUP_COLUMNS, ref, segment.from_ms, segment.to_ms)

    def fetch(from_ms: int, to_ms: int) -> RawRows:
        return _fetch_raw(connection, ref, from_ms, to_ms)

    if versions:
        cache = cache_of(connection.engine)
        raw = cache.read(ref.id, segment.from_ms, segment.to_ms, versions, fetch)
    else:
        raw = fetch(segment.from_ms, segment.to_ms)
    time_ms, value, span_ms = raw.T
    return np.column_stack((time_ms, np.ones(len(raw)), value, value, value, value, span_ms))


def _fetch_raw(connection: Connection, ref: SeriesRef, from_ms: int, to_ms: int) -> RawRows:
    row = CATALOGUE.get(ref.metric)
    if row is None or row.kind is not Kind.LEVEL:
        return _fetch(connection, "sample", "time_ms, value, span_ms", ref, from_ms, to_ms)
    rows = _fetch(connection, "sample", "time_ms, value", ref, from_ms, to_ms)
    return np.column_stack((rows, np.zeros(len(rows))))  # a level has no span, and a column less is faster


def _fetch(
    connection: Connection, table: str, columns: str, ref: SeriesRef, from_ms: int, to_ms: int
) -> FloatMatrix:
    width = columns.count(",") + 1
    rows = dialects.fetch_series(connection, table, columns, ref.id, from_ms, to_ms)
    flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=len(rows) * width)
    return flat.reshape(-1, width)


def _to_buckets(parts: Sequence[tuple[Segment, FloatMatrix]], window: Window) -> Buckets:
    rows = np.concatenate([part for _, part in parts])
    index = ((rows[:, 0] - window.from_ms) // window.step_ms).astype(np.int64)
    first = group_starts(index)
    last = np.append(first[1:], len(rows)) - 1
    where = index[first]

    def dense(values: NDArray[Any], fill: float, kind: type = np.float64) -> NDArray[Any]:
        array: NDArray[Any] = np.full(window.buckets, fill, dtype=kind)
        array[where] = values
        return array

    return Buckets(
        n=dense(np.add.reduceat(rows[:, 1], first), 0, np.int64),
        sum=dense(np.add.reduceat(rows[:, 2], first), 0.0),
        min=dense(np.minimum.reduceat(rows[:, 3], first), np.nan),
        max=dense(np.maximum.reduceat(rows[:, 4], first), np.nan),
        last=dense(rows[last, 5], np.nan),
        span_ms=dense(np.add.reduceat(rows[:, 6], first), 0, np.int64),
        resolution_ms=max(segment.resolution_ms for segment, _ in parts),
    )
