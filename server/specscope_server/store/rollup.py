"""Summaries of samples per series and bucket: pure functions on arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

MINUTE_MS = 60_000
TEN_MINUTES_MS = 600_000
HOUR_MS = 3_600_000

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples as columns, sorted by series and time; no (series, time) twice."""

    series_id: IntArray
    time_ms: IntArray
    value: FloatArray
    span_ms: IntArray

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Samples:
        """Return the samples at these positions or where the mask is true."""
        return Samples(self.series_id[which], self.time_ms[which], self.value[which], self.span_ms[which])

    def columns(self) -> list[list[int] | list[float]]:
        """Return plain lists in the order of the table's columns."""
        return [self.series_id.tolist(), self.time_ms.tolist(), self.value.tolist(), self.span_ms.tolist()]

    def __len__(self) -> int:
        return len(self.series_id)


@dataclass(frozen=True, slots=True)
class Rollup:
    """One row per series and bucket; ``time_ms`` is the bucket's start, ``last`` the value at ``last_ms``."""

    series_id: IntArray
    time_ms: IntArray
    n: IntArray
    sum: FloatArray
    min: FloatArray
    max: FloatArray
    last: FloatArray
    last_ms: IntArray
    span_ms: IntArray

    def columns(self) -> list[list[int] | list[float]]:
        """Return plain lists in the order of the table's columns."""
        arrays: list[IntArray | FloatArray] = [getattr(self, column.name) for column in fields(self)]
        return [array.tolist() for array in arrays]


def roll_up(samples: Samples, resolution_ms: int) -> Rollup:
    """Summarise samples per series and bucket of ``resolution_ms`` (buckets are aligned to the epoch)."""
    start_ms = samples.time_ms - samples.time_ms % resolution_ms
    first = group_starts(samples.series_id, start_ms)
    last = np.append(first[1:], len(samples)) - 1
    return Rollup(
        series_id=samples.series_id[first],
        time_ms=start_ms[first],
        n=(last - first + 1).astype(np.int64),
        sum=np.add.reduceat(samples.value, first),
        min=np.minimum.reduceat(samples.value, first),
        max=np.maximum.reduceat(samples.value, first),
        last=samples.value[last],
        last_ms=samples.time_ms[last],
        span_ms=np.add.reduceat(samples.span_ms, first),
    )


def group_starts(*keys: IntArray) -> NDArray[np.intp]:
    """Return the positions where a new group begins in sorted key columns (empty for empty columns)."""
    size = len(keys[0])
    begins = np.zeros(size, dtype=np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)
