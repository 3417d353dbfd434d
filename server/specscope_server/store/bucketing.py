"""Turn rows of raw samples and roll-ups into dense arrays per series.

Aggregating in SQL (GROUP BY) is no faster than fetching the rows: the group is an expression, so SQLite sorts
for it; and rows give the last value, which GROUP BY does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from specscope_collectors.catalogue import CATALOGUE, Kind
from specscope_server.kit.timerange import Window
from specscope_server.store import dialects
from specscope_server.store.buckets import Buckets, SeriesRef
from specscope_server.store.resolution import SUFFIX, Segment
from specscope_server.store.rollup import group_starts

_ROLLUP_COLUMNS = "time_ms, n, sum, min, max, last, span_ms"

FloatMatrix = NDArray[np.float64]
"""Rows of ``_ROLLUP_COLUMNS``. Times in ms and counts are exact in a float64 up to 2^53."""


def bucket_samples(
    connection: Connection, series: Sequence[SeriesRef], window: Window, segments: Sequence[Segment]
) -> dict[int, Buckets]:
    """Return the buckets of those series that have any sample in the segments."""
    result = {}
    for ref in series:
        parts = [(segment, _read(connection, ref, segment)) for segment in segments]
        parts = [(segment, rows) for segment, rows in parts if len(rows)]
        if parts:
            result[ref.id] = _to_buckets(parts, window)
    return result


def _read(connection: Connection, ref: SeriesRef, segment: Segment) -> FloatMatrix:
    """Read rows in order of time; raw samples become roll-ups of one."""
    if segment.resolution_ms:
        return _fetch(connection, _ROLLUP_COLUMNS, 7, ref, segment)
    if _has_span(ref.metric):
        time_ms, value, span_ms = _fetch(connection, "time_ms, value, span_ms", 3, ref, segment).T
    else:  # a column less is a sixth of the time
        time_ms, value = _fetch(connection, "time_ms, value", 2, ref, segment).T
        span_ms = np.zeros(len(time_ms))
    return np.column_stack((time_ms, np.ones(len(time_ms)), value, value, value, value, span_ms))


def _has_span(metric: str) -> bool:
    row = CATALOGUE.get(metric)
    return row is None or row.kind is not Kind.LEVEL


def _fetch(connection: Connection, columns: str, width: int, ref: SeriesRef, segment: Segment) -> FloatMatrix:
    rows = dialects.fetch_series(
        connection, f"sample{SUFFIX[segment.resolution_ms]}", columns, ref.id, segment.from_ms, segment.to_ms
    )
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
