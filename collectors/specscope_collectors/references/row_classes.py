"""Classes of rows and sketches of norms, by the definitions that serving profiles use.

A row is a sink when ln‖h‖ > median + 10 MAD of its slot (rows behind the first positions, to a bin of 0.02);
else it is of the head when its position is below 4; else it is one of the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import LnNorms

HEAD_POSITIONS = 4
HEAD, SINK, OTHER = "head", "sink", "other"
BIN_WIDTH = 0.02
ENOUGH_ROWS = 256
"""Rows behind the first positions from which on a limit is known."""
DEVIATIONS = 10.0

Floats = NDArray[np.float32]


def sketch_of(ln_norms: Floats) -> LnNorms:
    """Return the sketch of rows; those of norm 0 or not finite are not in it."""
    values = ln_norms[np.isfinite(ln_norms)].astype(np.float64)
    places, counts = np.unique(np.floor(values / BIN_WIDTH).astype(np.int64), return_counts=True)
    has_rows = bool(len(values))
    return LnNorms(
        sum=float(values.sum()),
        sum_of_squares=float((values * values).sum()),
        minimum=float(values.min()) if has_rows else 0.0,
        maximum=float(values.max()) if has_rows else 0.0,
        bins=dict(zip(places.tolist(), counts.tolist(), strict=True)),
        bin_width=BIN_WIDTH,
    )


def sink_limit(ln_norms: Floats) -> float | None:
    """Return the limit of a slot from its rows behind the first positions; None: too few rows.

    Where hardly any row has a norm, nothing is a sink: the limit is +∞. A MAD below a bin counts as one.
    """
    if len(ln_norms) < ENOUGH_ROWS:
        return None
    bins = sketch_of(ln_norms).bins
    if 2 * sum(bins.values()) < ENOUGH_ROWS:
        return math.inf
    pairs = [((place + 0.5) * BIN_WIDTH, count) for place, count in bins.items()]
    middle = _weighted_median(pairs)
    spread = _weighted_median([(abs(value - middle), count) for value, count in pairs])
    return middle + DEVIATIONS * max(spread, BIN_WIDTH)


def classes_of(ln_norms: Floats, positions: NDArray[np.int64], limit: float) -> dict[str, NDArray[np.bool_]]:
    """Return which rows are of each class; every row is of exactly one."""
    is_sink = np.isfinite(ln_norms) & (ln_norms > np.float32(limit))
    is_head = positions < HEAD_POSITIONS
    return {SINK: is_sink, HEAD: is_head & ~is_sink, OTHER: ~is_head & ~is_sink}


def _weighted_median(pairs: list[tuple[float, int]]) -> float:
    half = sum(count for _, count in pairs) / 2
    for value, count in sorted(pairs):
        half -= count
        if half <= 0:
            return value
    raise ValueError("there are no rows")
