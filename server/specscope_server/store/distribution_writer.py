"""Write the histograms of one batch: raw rows and roll-ups by addition, each histogram counted once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from specscope_collectors.observations import Distribution
from specscope_server.models import BucketLayout
from specscope_server.store import dialects
from specscope_server.store.identity import canonical
from specscope_server.store.limits import MAX_BUCKETS, time_reason
from specscope_server.store.refusal import Reason
from specscope_server.store.series_writer import RESOLUTIONS, table

COUNT_TOLERANCE = 1e-6
"""Relative: counts are whole numbers, but a sum of float64 increments may be off in the last digits."""

_REPLACE = "span_ms = new.span_ms, count = new.count, sum = new.sum, buckets = new.buckets"


def distribution_reason(record: Distribution, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a histogram cannot be."""
    numbers = (*record.buckets, record.count, record.sum)
    if not all(map(math.isfinite, numbers)):
        return Reason.NOT_FINITE
    if len(record.bounds) >= MAX_BUCKETS:
        return Reason.TOO_LARGE
    if not all(map(math.isfinite, record.bounds)) or any(
        a >= b for a, b in zip(record.bounds, record.bounds[1:], strict=False)
    ):
        return Reason.BAD_BOUNDS
    if len(record.buckets) != len(record.bounds) + 1:
        return Reason.BUCKET_COUNT_MISMATCH
    if min(record.buckets) < 0 or record.count < 0:
        return Reason.NEGATIVE_COUNT
    if not math.isclose(
        math.fsum(record.buckets), record.count, rel_tol=COUNT_TOLERANCE, abs_tol=COUNT_TOLERANCE
    ):
        return Reason.BUCKET_SUM_MISMATCH
    if not 0 < record.span_ms < 2**63:
        return Reason.BAD_SPAN
    return time_reason(record.time_ms, oldest_ms, now_ms)


@dataclass(frozen=True, slots=True)
class Row:
    """One histogram as it is stored."""

    series_id: int
    time_ms: int
    layout_id: int
    span_ms: int
    count: float
    sum: float
    buckets: NDArray[np.float64]

    @property
    def key(self) -> tuple[int, int, int]:
        """Primary key."""
        return self.series_id, self.time_ms, self.layout_id

    def __add__(self, other: Row) -> Row:
        return Row(
            *self.key,
            self.span_ms + other.span_ms,
            self.count + other.count,
            self.sum + other.sum,
            self.buckets + other.buckets,
        )


def layout_ids(connection: Connection, layouts: set[tuple[float, ...]]) -> dict[tuple[float, ...], int]:
    """Return bounds → id, making the layouts that are new."""
    texts = {canonical(list(bounds)): bounds for bounds in layouts}
    if not texts:
        return {}
    statement = select(BucketLayout.bounds, BucketLayout.id).where(BucketLayout.bounds.in_(texts))
    found = {texts[text]: layout_id for text, layout_id in connection.execute(statement)}
    # In one order, so that two writers that make the same layouts cannot wait for each other.
    missing = [{"bounds": text} for text, bounds in sorted(texts.items()) if bounds not in found]
    if missing:
        insert = dialects.insert(connection, BucketLayout.__table__).on_conflict_do_nothing()  # type: ignore[arg-type]
        connection.execute(insert, missing)
        found = {texts[text]: layout_id for text, layout_id in connection.execute(statement)}
    return found


def write_distributions(connection: Connection, rows: Sequence[Row]) -> int:
    """Store those histograms that are not there yet, roll them up, and return how many they were."""
    unique = {row.key: row for row in reversed(rows)}  # of several with one key the first sent counts
    keys = list(zip(*unique, strict=True)) if unique else [(), (), ()]
    stored = dialects.existing_keys(connection, table("distribution"), keys)
    new = [row for key, row in sorted(unique.items()) if key not in stored]
    if not new:
        return 0
    dialects.bulk_insert(connection, table("distribution"), _columns(new))
    for suffix, resolution_ms in RESOLUTIONS.items():
        _roll_up(connection, f"distribution_{suffix}", new, resolution_ms)
    return len(new)


def _roll_up(connection: Connection, name: str, rows: Sequence[Row], resolution_ms: int) -> None:
    """Add to the stored roll-ups. The sums are made here: no engine adds arrays of bytes."""
    sums: dict[tuple[int, int, int], Row] = {}
    for row in rows:
        start_ms = row.time_ms - row.time_ms % resolution_ms
        part = Row(row.series_id, start_ms, row.layout_id, row.span_ms, row.count, row.sum, row.buckets)
        sums[part.key] = sums[part.key] + part if part.key in sums else part
    for stored in _read(connection, name, sums):
        if stored.key in sums:
            sums[stored.key] = stored + sums[stored.key]
    dialects.merge(connection, table(name), _columns(list(sums.values())), _REPLACE)


def _read(connection: Connection, name: str, keys: dict[tuple[int, int, int], Row]) -> list[Row]:
    starts = [start_ms for _, start_ms, _ in keys]
    rows = dialects.select_by_ids(
        connection,
        table(name),
        {series_id for series_id, _, _ in keys},
        "AND time_ms >= ? AND time_ms <= ?",
        min(starts),
        max(starts),
    )
    return [_from_tuple(row) for row in rows]


def _columns(rows: Sequence[Row]) -> dialects.Columns:
    fixed = zip(*((*row.key, row.span_ms, row.count, row.sum) for row in rows), strict=True)
    return [*map(list, fixed), [row.buckets.astype("<f8").tobytes() for row in rows]]


def _from_tuple(row: Sequence[Any]) -> Row:
    series_id, time_ms, layout_id, span_ms, count, total, buckets = row
    return Row(series_id, time_ms, layout_id, span_ms, count, total, np.frombuffer(buckets, dtype="<f8"))
