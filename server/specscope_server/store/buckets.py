"""What the series reader takes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SeriesRef:
    """One stored series."""

    id: int
    server_id: int
    launch_id: int | None
    metric: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Samples of one series summarised per bucket of a window; arrays of length ``window.buckets``.

    ``n`` = samples in the bucket (0 = nothing was observed); where n is 0 the float arrays hold NaN (sum: 0).
    Increments: ``sum`` is the growth, ``span_ms`` the observed time it grew in. Levels: mean = sum / n.
    """

    n: NDArray[np.int64]
    sum: NDArray[np.float64]
    min: NDArray[np.float64]
    max: NDArray[np.float64]
    last: NDArray[np.float64]
    span_ms: NDArray[np.int64]
    resolution_ms: int
    """Resolution that was read; 0 = raw samples."""


@dataclass(frozen=True, slots=True)
class DistributionBuckets:
    """Histograms of one series added up per bucket of a window (rows) and histogram bucket (columns)."""

    bounds: tuple[float, ...]
    counts: NDArray[np.float64]
    """Shape (window.buckets, len(bounds) + 1), per-bucket, overflow last."""
    count: NDArray[np.float64]
    sum: NDArray[np.float64]
