"""Rows side by side: the same tokens in the same context, in training and in serving. Pure, on arrays.

Boundaries are ranked by relative L2, and nothing is judged by a limit of the cosine: an honest target of four
bits reads .965 to .977 where an off-by-one reads .953 to .976.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

LEAST_GRAM_ROWS = 8
"""Rows from which on it is looked for a rotation or a norm."""
MOST_GRAM_ROWS = 512


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near served rows are to a place, over rows."""

    relative_l2: float
    """Median of ‖s − t‖ / ‖t‖."""
    cosine: float
    """Median."""
    ln_norm_ratio: float
    """Median of ln(‖s‖ / ‖t‖)."""


def nearness(served: Floats, trained: Floats) -> Nearness:
    """Compare rows, both of shape (rows, H). NaN where no row has a norm."""
    one, other = served.astype(np.float64), trained.astype(np.float64)
    lengths, wanted = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
    used = np.isfinite(lengths) & np.isfinite(wanted) & (lengths > 0) & (wanted > 0)
    if not used.any():
        return Nearness(np.nan, np.nan, np.nan)
    one, other, lengths, wanted = one[used], other[used], lengths[used], wanted[used]
    return Nearness(
        float(np.median(np.linalg.norm(one - other, axis=1) / wanted)),
        float(np.median((one * other).sum(axis=1) / (lengths * wanted))),
        float(np.median(np.log(lengths / wanted))),
    )


def nearest_rows(served: Floats, places: Floats) -> Integers:
    """Return the nearest place of each row by relative L2; places have the shape (places, rows, H)."""
    distances = np.stack([_relative(served, each) for each in places])
    return np.asarray(np.argmin(np.nan_to_num(distances, nan=np.inf), axis=0))


def _relative(served: Floats, trained: Floats) -> NDArray[np.float64]:
    lengths = np.linalg.norm(trained.astype(np.float64), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = np.linalg.norm(served.astype(np.float64) - trained, axis=1) / lengths
    return found


def gram_difference(served: Floats, trained: Floats) -> float:
    """Return how much inner products between rows differ: ‖ŜŜᵀ − T̂T̂ᵀ‖ / ‖T̂T̂ᵀ − mean‖ of unit rows.

    It is 0 for states that are rotated or permuted as a whole, whatever their cosine. Neighbouring layers
    are near to each other by it, too: it says which place was rotated only where nothing else fits. NaN for
    fewer than `LEAST_GRAM_ROWS` rows.
    """
    if len(served) < LEAST_GRAM_ROWS:
        return float("nan")
    grams = []
    for rows in (served[:MOST_GRAM_ROWS], trained[:MOST_GRAM_ROWS]):
        values = rows.astype(np.float64)
        units = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-30)
        gram = units @ units.T
        grams.append(gram[~np.eye(len(gram), dtype=bool)])
    spread = float(np.linalg.norm(grams[1] - grams[1].mean()))
    return float(np.linalg.norm(grams[0] - grams[1])) / max(spread, 1e-12)


def norm_residual(served: Floats, trained: Floats) -> float:
    """Return how badly served rows are ``w · t / rms(t)`` for one weight w of each channel: relative L2.

    w is fitted to half of the rows (least squares) and tried on the other half. About 0 for states behind an
    RMS norm, whatever its weight. NaN for fewer than `LEAST_GRAM_ROWS` rows.
    """
    if len(served) < LEAST_GRAM_ROWS:
        return float("nan")
    values, states = trained.astype(np.float64), served.astype(np.float64)
    scaled = values / np.maximum(np.sqrt((values * values).mean(axis=1, keepdims=True)), 1e-30)
    fit, rest = slice(0, None, 2), slice(1, None, 2)
    energy = np.maximum((scaled[fit] ** 2).sum(axis=0), 1e-30)
    weight = (states[fit] * scaled[fit]).sum(axis=0) / energy
    lengths = np.maximum(np.linalg.norm(states[rest], axis=1), 1e-30)
    return float(np.median(np.linalg.norm(states[rest] - weight * scaled[rest], axis=1) / lengths))
