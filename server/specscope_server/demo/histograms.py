"""Histograms with the bucket bounds that SGLang uses for its latencies (seconds)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

_HUNDREDS = (*range(100, 1000, 100), 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000)
FIRST_TOKEN = (
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    2.0,
    4.0,
    6.0,
    8.0,
    10.0,
    20.0,
    40.0,
    60.0,
    80.0,
    100.0,
    200.0,
    400.0,
)
END_TO_END = (*FIRST_TOKEN, 600.0, 1200.0, 1800.0, 2400.0)
_TENS_OF_MS = (0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1)
INTER_TOKEN = (0.002, 0.004, 0.006, 0.008, *_TENS_OF_MS, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0)
_QUEUE_SECONDS = (1, 2, 3, 4, 5, 10, 15, *range(20, 100, 10))
QUEUE_OLD = tuple(map(float, (0.0, 0.1, 0.2, 0.5, *_QUEUE_SECONDS, *_HUNDREDS)))
QUEUE = tuple(sorted({*QUEUE_OLD, 0.001, 0.005, 0.01, 0.05}))
STAGE = tuple(0.001 * 1.62**k for k in range(30))


@dataclass(slots=True)
class Histogram:
    """Counts per bucket; the last of ``counts`` is the overflow."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def __post_init__(self) -> None:
        """Start empty."""
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Count ``value`` ``times`` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    @property
    def count(self) -> int:
        """Return how many values were observed."""
        return sum(self.counts)
