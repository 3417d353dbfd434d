"""Whether rows stand behind the final norm, from sums alone: mean((h/w)²) = 1 for each of them then."""

from __future__ import annotations

import numpy as np

from specscope_collectors.states.sums import Floats, Sums

NEAR = 0.02
"""bfloat16 errs by less than 1 %; the residual stream of the layers before is far from 1."""
TINY = 1e-6


def mean_square(window: Sums, weight: Floats) -> float | None:
    """Return the mean over rows and channels of (h/w)², or of (h/(1 + w))² where that is nearer to 1.

    Sinks, the first positions and rows that repeat a shared prefix are not among them. None: the window keeps
    no Σh², or the weight is of another hidden size.
    """
    rows = window.energy_rows
    if not rows or len(window.energy) != len(weight):
        return None
    found = []
    for scale in (weight, 1 + weight):
        used = np.abs(scale) > TINY
        if used.any():
            found.append(float((window.energy[used] / scale[used] ** 2).mean() / rows))
    return min(found, key=lambda each: abs(each - 1), default=None)


def is_post_norm(square: float) -> bool:
    """Say whether a mean square is that of rows behind the norm."""
    return abs(square - 1) < NEAR
