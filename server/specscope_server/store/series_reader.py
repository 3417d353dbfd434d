"""Read time series in buckets: the one door through which the domains see samples.

Interface (implemented by the store; domains depend only on this):

* `find_series` resolves metric, server, launches and labels into `SeriesRef`s;
* `read_buckets` returns dense arrays per series; ``n == 0`` marks a gap (missing is not zero);
* `read_distributions` adds histograms up over a window, per bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.kit.timerange import Window


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


def find_series(
    session: Session,
    *,
    metrics: Sequence[str],
    server_id: int | None = None,
    launch_ids: Sequence[int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[SeriesRef]:
    """Return the series that match all given conditions, ordered by id. ``labels`` matches as a subset."""
    raise NotImplementedError


def read_buckets(session: Session, series: Sequence[SeriesRef], window: Window) -> dict[int, Buckets]:
    """Return ``series id → Buckets`` for series with any sample in the window, at the coarsest exact resolution."""
    raise NotImplementedError


def read_distributions(
    session: Session, series: Sequence[SeriesRef], window: Window
) -> dict[int, list[DistributionBuckets]]:
    """Return ``series id → histograms`` (one entry per bucket layout) for series with any growth in the window."""
    raise NotImplementedError
