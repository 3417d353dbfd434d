"""The random projection of directions that serving profiles use, built again from its name.

``gauss-256-20260401`` is a matrix of H rows and 256 columns whose entries come in pairs: pair n = 128·i + m
stands in row i, columns 2m and 2m + 1. With SplitMix64 (Steele, Lea, Flood 2014) as counter-based source of
two uniform numbers u₁, u₂ for each pair, the entries are √(−2 ln u₁)·cos(2π u₂)/16 and the same with sin
(Box and Muller), in float64, rounded to float32. The probe's guide has the numbers; a test compares the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIZE, SEED, SKETCH = 256, 20_260_401, 16
NAME = f"gauss-{SIZE}-{SEED}"
ROWS_AT_ONCE = 512
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def projection_of(hidden_size: int, columns: int = SIZE) -> NDArray[np.float32]:
    """Return its first columns, shape (hidden_size, columns); ``u @ projection`` keeps angles."""
    made = np.empty((hidden_size, columns), np.float32)
    for first in range(0, hidden_size, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, hidden_size)
        rows = np.arange(first, last)[:, None] * (SIZE // 2)
        pairs = (rows + np.arange((columns + 1) // 2)).astype(np.uint64)
        radius = np.sqrt(-2.0 * np.log(_uniform(pairs * np.uint64(2) + np.uint64(1))))
        angle = 2.0 * np.pi * _uniform(pairs * np.uint64(2) + np.uint64(2))
        both = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1) / np.sqrt(SIZE)
        made[first:last] = both.reshape(last - first, -1)[:, :columns]
    return made


def _uniform(counter: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a number in (0, 1) for each counter: SplitMix64's finaliser, 53 bits of it."""
    with np.errstate(over="ignore"):
        state = np.uint64(SEED) + counter * _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return ((state >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
