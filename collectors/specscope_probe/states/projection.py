"""The random projection of directions, which anybody can build again from its name with numpy alone.

``gauss-256-20260401`` is a matrix of H rows and 256 columns. Its entries are made in pairs: pair
n = 128·i + m stands in row i, columns 2m and 2m + 1. With G = 0x9E3779B97F4A7C15 and, modulo 2⁶⁴, the
finaliser of SplitMix64 (Steele, Lea, Flood 2014)

    mix(z):  z ^= z >> 30;  z *= 0xBF58476D1CE4E5B9;  z ^= z >> 27;  z *= 0x94D049BB133111EB;  z ^= z >> 31

the pair has u₁ = ((mix(seed + (2n + 1)·G) >> 11) + ½)·2⁻⁵³, u₂ likewise with (2n + 2), and, by Box and
Muller, the entries √(−2 ln u₁)·cos(2π u₂)/16 and √(−2 ln u₁)·sin(2π u₂)/16, computed in float64 and rounded
to float32. A row does not depend on H.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIZE = 256
SEED = 20_260_401
NAME = f"gauss-{SIZE}-{SEED}"
ROWS_AT_ONCE = 512

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def matrix(hidden_size: int) -> NDArray[np.float32]:
    """Return the projection, shape (hidden_size, SIZE): ``u @ matrix`` keeps angles, as 1/√SIZE is in it."""
    made = np.empty((hidden_size, SIZE), np.float32)
    for first in range(0, hidden_size, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, hidden_size)
        pairs = np.arange(first * SIZE // 2, last * SIZE // 2, dtype=np.uint64)
        radius = np.sqrt(-2.0 * np.log(_uniform(2 * pairs + np.uint64(1))))
        angle = 2.0 * np.pi * _uniform(2 * pairs + np.uint64(2))
        rows = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1)
        made[first:last] = (rows / np.sqrt(SIZE)).reshape(last - first, SIZE)
    return made


def _uniform(counter: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return numbers in (0, 1), one for each counter."""
    with np.errstate(over="ignore"):
        z = np.uint64(SEED) + counter * _GOLDEN
        for shift, factor in _STEPS:
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
