"""Samples and roll-ups of many series, side by side in arrays, and their sums per bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from specscope_server.kit.timerange import Window
from specscope_server.store import dialects
from specscope_server.store.buckets import Buckets
from specscope_server.store.rollup import group_starts

Matrix = NDArray[np.float64]
"""Rows of numbers; times in ms, ids and counts are exact in a float64 up to 2^53."""

RAW, ROLLED_UP = "time_ms, value, span_ms", "time_ms, n, sum, min, max, last, span_ms"
MOST_AT_ONCE = 100_000
"""Rows that one statement is likely to return at most: as Python objects, each takes a few hundred bytes."""
USUAL_SAMPLE_MS = 5_000


@dataclass(frozen=True, slots=True)
class Rows:
    """All arrays of shape (rows,), sorted by series and time."""

    place: NDArray[np.int64]
    """Which of the series that were asked for."""
    time_ms: Matrix
    n: Matrix
    sum: Matrix
    min: Matrix
    max: Matrix
    last: Matrix
    span_ms: Matrix
    resolution_ms: int

    def __len__(self) -> int:
        return len(self.place)


def raw_rows(place: NDArray[np.int64], matrix: Matrix) -> Rows:
    """Return samples (columns of `RAW`) as roll-ups of one."""
    time_ms, value, span_ms = matrix.T
    return Rows(place, time_ms, np.ones(len(place)), value, value, value, value, span_ms, 0)


def rolled_up_rows(place: NDArray[np.int64], matrix: Matrix, resolution_ms: int) -> Rows:
    """Return roll-ups (columns of `ROLLED_UP`)."""
    time_ms, n, total, least, most, last, span_ms = matrix.T
    return Rows(place, time_ms, n, total, least, most, last, span_ms, resolution_ms)


def stacked(parts: Sequence[Matrix]) -> tuple[NDArray[np.int64], Matrix]:
    """Return (place, rows) of the rows of each series."""
    sizes = [len(part) for part in parts]
    return np.repeat(np.arange(len(parts)), sizes), np.concatenate(parts)


def fetch(
    connection: Connection, table: str, columns: str, ids: Sequence[int], span: tuple[int, int],
    resolution_ms: int,
) -> tuple[NDArray[np.int64], Matrix]:  # fmt: skip
    """Return (place among ``ids``, rows without the id) in [from, to), sorted by place and time."""
    parts = [
        as_matrix(dialects.fetch_many(connection, table, columns, part, *span), columns.count(",") + 2)
        for part in _portions(ids, span, resolution_ms)
    ]
    return by_place(np.concatenate(parts), ids)


def by_place(matrix: Matrix, ids: Sequence[int]) -> tuple[NDArray[np.int64], Matrix]:
    """Return (place among ``ids``, rows without the id), sorted by place and time, of rows (id, time, …)."""
    known = np.array(ids, dtype=np.float64)
    order = np.argsort(known)
    place = order[np.searchsorted(known, matrix[:, 0], sorter=order)]
    steps, later = np.diff(place), np.diff(matrix[:, 1]) > 0
    if not ((steps > 0) | ((steps == 0) & later)).all():
        ordered = np.lexsort((matrix[:, 1], place))
        place, matrix = place[ordered], matrix[ordered]
    return place, matrix[:, 1:]


def as_matrix(rows: Sequence[Any], width: int) -> Matrix:
    """Return tuples of numbers as an array of shape (rows, width)."""
    flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=len(rows) * width)
    return flat.reshape(-1, width)


def _portions(ids: Sequence[int], span: tuple[int, int], resolution_ms: int) -> Iterator[Sequence[int]]:
    likely = max((span[1] - span[0]) // (resolution_ms or USUAL_SAMPLE_MS), 1)
    size = max(MOST_AT_ONCE // likely, 1)
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def buckets_of(parts: Sequence[Rows], ids: Sequence[int], window: Window) -> dict[int, Buckets]:
    """Return series id → buckets, of those series that have rows; parts lie one after the other in time."""
    rows = _joined([part for part in parts if len(part)])
    if rows is None:
        return {}
    index = ((rows.time_ms - window.from_ms) // window.step_ms).astype(np.int64)
    first = group_starts(rows.place, index)
    last = np.append(first[1:], len(rows)) - 1
    used = rows.place[group_starts(rows.place)]
    where = np.searchsorted(used, rows.place[first]), index[first]
    shape = len(used), window.buckets

    def dense(values: NDArray[Any], fill: float, kind: type = np.float64) -> NDArray[Any]:
        array: NDArray[Any] = np.full(shape, fill, dtype=kind)
        array[where] = values
        return array

    columns = (
        dense(np.add.reduceat(rows.n, first), 0, np.int64),
        dense(np.add.reduceat(rows.sum, first), 0.0),
        dense(np.minimum.reduceat(rows.min, first), np.nan),
        dense(np.maximum.reduceat(rows.max, first), np.nan),
        dense(rows.last[last], np.nan),
        dense(np.add.reduceat(rows.span_ms, first), 0, np.int64),
    )
    coarsest = _coarsest(parts, len(ids))
    return {
        ids[place]: Buckets(n, total, least, most, newest, span_ms, resolution_ms)
        for place, resolution_ms, n, total, least, most, newest, span_ms in zip(
            used.tolist(), coarsest[used].tolist(), *columns, strict=True
        )
    }


def _joined(parts: Sequence[Rows]) -> Rows | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    order = np.argsort(np.concatenate([part.place for part in parts]), kind="stable")
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("place", "time_ms", "n", "sum", "min", "max", "last", "span_ms")
    }
    return Rows(**columns, resolution_ms=0)


def _coarsest(parts: Sequence[Rows], count: int) -> NDArray[np.int64]:
    """Return the coarsest resolution that was read of each series."""
    found = np.zeros(count, dtype=np.int64)
    for part in parts:
        found[part.place] = np.maximum(found[part.place], part.resolution_ms)
    return found


def times_by_series(rows: Rows, ids: Sequence[int]) -> Mapping[int, tuple[NDArray[np.int64], Matrix]]:
    """Return series id → (times, values), of those series that have samples."""
    if not len(rows):
        return {}
    first = group_starts(rows.place)
    last = np.append(first[1:], len(rows))
    return {
        ids[int(rows.place[begin])]: (rows.time_ms[begin:end].astype(np.int64), rows.last[begin:end])
        for begin, end in zip(first.tolist(), last.tolist(), strict=True)
    }
