"""Combine bucketed series and take quantiles of histograms (pure, NumPy)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def combine(values: Sequence[Floats], how: str) -> Floats:
    """Combine arrays of shape (buckets,) at each instant; NaN = not observed.

    ``sum``, ``mean``, ``max``; ``same``: the common value, NaN where they differ. A bucket that none
    observed is NaN; a sum over some of the arrays only is still a sum (the count of observed arrays tells).
    """
    if len(values) == 1:
        return np.array(values[0], dtype=np.float64)
    stacked = np.vstack(values)
    seen = ~np.isnan(stacked)
    known = seen.any(axis=0)
    filled = np.where(seen, stacked, 0.0)
    if how == "sum":
        combined = filled.sum(axis=0)
    elif how == "mean":
        combined = filled.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    else:
        high = np.where(seen, stacked, -np.inf).max(axis=0)
        low = np.where(seen, stacked, np.inf).min(axis=0)
        combined = high if how == "max" else np.where(high == low, high, np.nan)
    return np.where(known, combined, np.nan)


def histogram_quantile(q: float, bounds: Sequence[float], counts: Floats) -> Floats:
    """Return the q-quantile of each row of per-bucket ``counts`` (rows, len(bounds) + 1), NaN for empty rows.

    Linear inside a bucket, from 0 in the first one (the values are lengths of time). A quantile in the
    overflow is the last bound: "at least". Source: the usual reading of Prometheus histograms.
    """
    total = counts.sum(axis=1)
    cumulative = np.cumsum(counts, axis=1)
    rank = q * total
    place = (cumulative < rank[:, None]).sum(axis=1)
    place = np.minimum(place, counts.shape[1] - 1)
    edges = np.asarray([0.0, *bounds, bounds[-1] if bounds else 0.0])
    rows = np.arange(len(counts))
    inside = counts[rows, place]
    before = cumulative[rows, place] - inside
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(inside > 0, (rank - before) / inside, 0.0)
    value = edges[place] + np.clip(share, 0.0, 1.0) * (edges[place + 1] - edges[place])
    return np.where(total > 0, value, np.nan)
