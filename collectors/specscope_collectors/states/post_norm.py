"""Whether rows stand behind the final norm, from sums alone: mean((h/w)²) = 1 for each of them then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.states.sums import Floats, Sums

NEAR = 0.02
"""bfloat16 errs by less than 1 %; the residual stream of the layers before is far from 1."""
AGREE = 0.1
"""Of the mean in which rows count by 1/‖h‖²: it has rows of shared prefixes in it, and norms to 2 %."""
TINY = 1e-6


def normed_square(window: Sums, weight: Floats) -> float | None:
    """Return `mean_square`; where that is 1 because rows happen to be so large, another mean that is not.

    In the other one each row counts by 1/‖h‖², which takes nothing but Σu². Behind the norm both are 1; else
    they are as far apart as norms are spread.
    """
    plain = mean_square(window, weight)
    norms = window.norms
    if plain is None or not is_post_norm(plain) or len(window.direction_squares) != len(weight):
        return plain
    middles = (norms.first + np.arange(len(norms.counts)) + 0.5) * norms.width
    with np.errstate(over="ignore"):
        inverse = float(norms.counts @ np.exp(-2 * middles))
    if not 0 < inverse < np.inf:
        return plain
    other = _nearest(window.direction_squares, weight, inverse)
    return plain if other is None or abs(other - 1) < AGREE else other


def mean_square(window: Sums, weight: Floats) -> float | None:
    """Return the mean over rows and channels of (h/w)², or of (h/(1 + w))² where that is nearer to 1.

    Sinks, the first positions and rows that repeat a shared prefix are not among them. None: the window keeps
    no Σh², or the weight is of another hidden size.
    """
    rows = window.energy_rows
    if not rows or len(window.energy) != len(weight):
        return None
    return _nearest(window.energy, weight, rows)


def _nearest(squares: NDArray[np.float64], weight: Floats, rows: float) -> float | None:
    found = []
    for scale in (weight, 1 + weight):
        used = np.abs(scale) > TINY
        if used.any():
            found.append(float((squares[used] / scale[used] ** 2).mean() / rows))
    return min(found, key=lambda each: abs(each - 1), default=None)


def is_post_norm(square: float) -> bool:
    """Say whether a mean square is that of rows behind the norm."""
    return abs(square - 1) < NEAR
