"""Norms: a mergeable sketch of ln‖h‖, and the limit beyond which a row is a sink."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

BIN_WIDTH = 0.02
ENOUGH_ROWS = 256
"""Rows behind the first positions from which on a limit is known."""
DEVIATIONS = 10.0

Floats = NDArray[np.float32]


@dataclass(slots=True)
class NormSketch:
    """Moments of ln‖h‖ and counts in bins of equal width."""

    sum: float = 0.0
    sum_of_squares: float = 0.0
    minimum: float = math.inf
    maximum: float = -math.inf
    bins: dict[int, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows in it."""
        return sum(self.bins.values())

    def add(self, ln_norms: Floats) -> None:
        """Add rows; all must be finite."""
        if not len(ln_norms):
            return
        values = ln_norms.astype(np.float64)
        self.sum += float(values.sum())
        self.sum_of_squares += float((values * values).sum())
        self.minimum = min(self.minimum, float(values.min()))
        self.maximum = max(self.maximum, float(values.max()))
        for place in np.floor(values / BIN_WIDTH).astype(np.int64).tolist():  # few rows: quicker than unique
            self.bins[place] = self.bins.get(place, 0) + 1

    def described(self) -> dict[str, Any]:
        """Return it as ``LnNorms`` of the contract; without rows all moments are 0."""
        has_rows = bool(self.bins)
        return {
            "sum": self.sum,
            "sum_of_squares": self.sum_of_squares,
            "minimum": self.minimum if has_rows else 0.0,
            "maximum": self.maximum if has_rows else 0.0,
            "bins": {str(place): count for place, count in sorted(self.bins.items())},
            "bin_width": BIN_WIDTH,
        }


def median(bins: Mapping[int, int]) -> float:
    """Return the median of a sketch, to half a bin. Raises ValueError when it is empty."""
    return _weighted_median([((place + 0.5) * BIN_WIDTH, count) for place, count in bins.items()])


def sink_limit(bins: Mapping[int, int], seen: int) -> float | None:
    """Return median + 10 MAD of ln‖h‖; None: too few rows were seen. A MAD below a bin's width counts as one.

    Where rows were seen but hardly any had a norm, nothing is a sink: the limit is +∞.
    """
    if seen < ENOUGH_ROWS:
        return None
    if 2 * sum(bins.values()) < ENOUGH_ROWS:
        return math.inf
    middle = median(bins)
    distances = [(abs((place + 0.5) * BIN_WIDTH - middle), count) for place, count in bins.items()]
    return middle + DEVIATIONS * max(_weighted_median(distances), BIN_WIDTH)


def _weighted_median(pairs: list[tuple[float, int]]) -> float:
    half = sum(count for _, count in pairs) / 2
    for value, count in sorted(pairs):
        half -= count
        if half <= 0:
            return value
    raise ValueError("there are no rows")
