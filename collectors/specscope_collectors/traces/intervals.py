"""Unions of intervals, all occurrences at once (pure NumPy)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


def union_lengths(start: Floats, end: Floats, group: Ints, groups: int) -> Floats:
    """Return the length of the union of intervals within each group, shape (groups,).

    ``start``, ``end``, ``group``: shape (intervals,), 0 <= group < groups. Intervals of different groups do
    not touch each other: each group is laid out after the one before, and one sweep covers all.
    """
    if not len(start):
        return np.zeros(groups)
    low = np.full(groups, np.inf)
    high = np.full(groups, -np.inf)
    np.minimum.at(low, group, start)
    np.maximum.at(high, group, end)
    sizes = np.where(np.isfinite(low), high - low, 0.0)
    shift = np.concatenate(([0.0], np.cumsum(sizes)[:-1])) - np.where(np.isfinite(low), low, 0.0)
    order = np.lexsort((start, group))
    begin, stop, of = start[order], end[order], group[order]
    begin, stop = begin + shift[of], stop + shift[of]
    reached = np.concatenate(([-np.inf], np.maximum.accumulate(stop)[:-1]))
    covered = np.maximum(0.0, stop - np.maximum(begin, reached))
    return np.bincount(of, weights=covered, minlength=groups).astype(np.float64)


def extents(start: Floats, end: Floats, group: Ints, groups: int) -> tuple[Floats, Floats]:
    """Return the first start and the last end of each group; infinite for one without intervals."""
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, group, start)
    np.maximum.at(high, group, end)
    return low, high
