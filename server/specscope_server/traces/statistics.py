"""Summaries and comparisons of the times of occurrences (pure).

A capture holds a few dozen cycles of one moment: the interval covers the scatter of cycles within it, not
what another hour would have shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
RESAMPLES = 2_000
MIN_OCCURRENCES = 6
"""Fewer say nothing of their scatter."""
SEED = 20_260_501


@dataclass(frozen=True, slots=True)
class Spread:
    """What n occurrences take, ms."""

    n: int
    mean: float
    median: float
    p95: float
    total: float


@dataclass(frozen=True, slots=True)
class Change:
    """Mean of b minus mean of a (ms), with its 95 % bootstrap interval; None = too few occurrences."""

    a: float
    b: float
    change: float
    low: float | None = None
    high: float | None = None

    @property
    def is_shown(self) -> bool:
        """True when the interval leaves 0 out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def spread_of(values: Floats) -> Spread | None:
    """Return the summary of times, shape (occurrences,); None when there are none."""
    if not len(values):
        return None
    median, p95 = np.quantile(values, (0.5, 0.95))
    return Spread(len(values), float(values.mean()), float(median), float(p95), float(values.sum()))


def mean_over_ranks(ranks: Sequence[Floats]) -> Floats:
    """Return the mean over ranks of each occurrence, shape (fewest occurrences of a rank,)."""
    shortest = min((len(each) for each in ranks), default=0)
    return np.mean([each[:shortest] for each in ranks], axis=0) if shortest else np.zeros(0)


def change_of(a: Floats, b: Floats) -> Change:
    """Return the change of the mean from a to b. Occurrences are resampled in blocks of neighbours."""
    mean_a, mean_b = _mean(a), _mean(b)
    if min(len(a), len(b)) < MIN_OCCURRENCES:
        return Change(mean_a, mean_b, mean_b - mean_a)
    random = np.random.default_rng(SEED)
    difference = _resampled(b, random) - _resampled(a, random)
    low, high = np.quantile(difference, (0.025, 0.975))
    return Change(mean_a, mean_b, mean_b - mean_a, float(low), float(high))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _resampled(values: Floats, random: np.random.Generator) -> Floats:
    """Return means of circular block resamples (blocks of ⌈n^⅓⌉; Politis and Romano 1992).

    Scaled by √(m / (m − 1)) about the mean, m blocks: resampling few shows too little scatter.
    """
    n = len(values)
    block = int(np.ceil(n ** (1 / 3)))
    count = -(-n // block)
    sums = np.convolve(np.concatenate((values, values[: block - 1])), np.ones(block), mode="valid")
    starts = random.integers(0, n, (RESAMPLES, count))
    means = sums[starts].mean(axis=1) / block
    result: Floats = values.mean() + (means - values.mean()) * (count / max(count - 1, 1)) ** 0.5
    return result


def exposed(
    classes: Mapping[str, Floats], busy: Mapping[str, Floats], names: Sequence[str]
) -> tuple[float, float]:
    """Return (ms of communication that nothing hides, ms of all communication), summed."""
    bare = sum(float(classes[name].sum()) for name in names if name in classes)
    return bare, sum(float(busy[name].sum()) for name in names if name in busy)
