"""Comparison of paired measurements (pure): the same prompts before and after.

Each prompt is compared with itself, as ln(after / before), so that what prompts differ by cancels out. The
interval is Student's t over the pairs; the p-value flips the signs of the differences, which needs no
distribution (Fisher's randomisation test; with up to 14 pairs all flips, else 20,000 seeded random ones).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import student_t

MIN_PAIRS = 6
"""Fewer pairs cannot reach p < 0.05 by flipping signs (2 / 2^5 = 0.06)."""
EXACT_PAIRS, FLIPS = 14, 20_000
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Paired:
    """Relative change over n pairs: ``exp(mean ln ratio) − 1`` with its 95 % interval."""

    n: int
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    lower: int = 0
    """Pairs in which the value fell."""
    higher: int = 0

    @property
    def is_shown(self) -> bool:
        """True when interval and test agree that there is a change."""
        if self.p_value is None or self.low is None or self.high is None:
            return False
        return self.p_value < ALPHA and (self.low > 0 or self.high < 0)


def paired_change(before: NDArray[np.float64], after: NDArray[np.float64]) -> Paired:
    """Return the change between positive values of the same things, shape (pairs,) each."""
    difference = np.log(after / before)
    n = len(difference)
    lower, higher = int((difference < 0).sum()), int((difference > 0).sum())
    if n == 0:
        return Paired(0)
    mean = float(difference.mean())
    if n < MIN_PAIRS:
        return Paired(n, float(np.expm1(mean)), lower=lower, higher=higher)
    half = student_t(n - 1) * float(difference.std(ddof=1)) / n**0.5
    return Paired(
        n, float(np.expm1(mean)), float(np.expm1(mean - half)), float(np.expm1(mean + half)),
        sign_flip_p_value(difference), lower, higher,
    )  # fmt: skip


def sign_flip_p_value(difference: NDArray[np.float64]) -> float:
    """Return how often a mean at least as far from 0 arises when each difference may have either sign."""
    n = len(difference)
    if n <= EXACT_PAIRS:
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        means = (1.0 - 2.0 * bits) @ difference
        return float(np.mean(np.abs(means) >= abs(difference.sum()) - 1e-12))
    signs = np.random.default_rng(20_260_401).integers(0, 2, (FLIPS, n)) * 2.0 - 1.0
    reached = int((np.abs(signs @ difference) >= abs(difference.sum()) - 1e-12).sum())
    return (reached + 1) / (FLIPS + 1)
