"""Statistics of two profiles. Pure; every result is 0 for equal profiles. NaN: cannot be computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specscope_collectors.states.sums import Floats, Norms, Sums

PSI_BINS = 10
PSI_HALF = 0.5
"""Rows added to each bin, so that an empty one does not make it infinite."""


def quantiles(norms: Norms, shares: Sequence[float] | Floats) -> list[float]:
    """Return quantiles of ln‖h‖ in nats, to a bin's width; linear within a bin. NaN without rows."""
    if not norms.rows:
        return [math.nan] * len(shares)
    edges = (norms.first + np.arange(len(norms.counts) + 1)) * norms.width
    reached = np.concatenate(([0], np.cumsum(norms.counts))) / norms.rows
    return [float(value) for value in np.interp(shares, reached, edges)]


def _shares(one: Norms, other: Norms) -> tuple[Floats, Floats] | None:
    """Return the share of rows in each bin of a common axis; None where there is nothing to compare."""
    if not one.rows or not other.rows or one.width != other.width:
        return None
    first = min(one.first, other.first)
    last = max(one.first + len(one.counts), other.first + len(other.counts))
    both = np.zeros((2, last - first))
    for line, norms in zip(both, (one, other), strict=True):
        start = norms.first - first
        line[start : start + len(norms.counts)] = norms.counts / norms.rows
    return both[0], both[1]


def w1(one: Norms, other: Norms) -> float:
    """Return W₁ of ln‖h‖ in nats: ∫|F − G|, where F and G are distribution functions of the bins."""
    shares = _shares(one, other)
    if shares is None:
        return math.nan
    return float(np.abs(np.cumsum(shares[0] - shares[1])).sum() * one.width)


def ks(one: Norms, other: Norms) -> float:
    """Return the Kolmogorov-Smirnov distance max|F − G| of ln‖h‖, at bin edges."""
    shares = _shares(one, other)
    if shares is None:
        return math.nan
    return float(np.abs(np.cumsum(shares[0] - shares[1])).max())


def psi(serving: Norms, reference: Norms) -> float:
    """Return the population stability index Σ(p − q)·ln(p/q) over tenths of the reference."""
    if not serving.rows or not reference.rows:
        return math.nan
    cuts: Floats = np.unique(np.array(quantiles(reference, np.linspace(0, 1, PSI_BINS + 1)[1:-1])))
    shares = []
    for norms in (serving, reference):
        edges = (norms.first + np.arange(len(norms.counts) + 1)) * norms.width
        reached = np.concatenate(([0], np.cumsum(norms.counts)))
        at_cuts = np.interp(cuts, edges, reached)
        counts = np.diff(np.concatenate(([0], at_cuts, [norms.rows]))) + PSI_HALF
        shares.append(counts / counts.sum())
    return float(((shares[0] - shares[1]) * np.log(shares[0] / shares[1])).sum())


def channel_rms(one: Sums, other: Sums) -> float:
    """Return the RMS difference of ln channel RMS, each centred over channels (so that scale drops out)."""
    if not len(one.energy) or len(one.energy) != len(other.energy):
        return math.nan
    used = (one.energy > 0) & (other.energy > 0)
    if not used.any():
        return math.nan
    logs = [0.5 * np.log(each.energy[used]) for each in (one, other)]
    difference = (logs[0] - logs[0].mean()) - (logs[1] - logs[1].mean())
    return float(np.sqrt((difference * difference).mean()))


def direction(one: Sums, other: Sums) -> float:
    """Return 1 − cos of the mean unit vectors."""
    if not one.has_directions or len(one.directions) != len(other.directions):
        return math.nan
    lengths = np.linalg.norm(one.directions) * np.linalg.norm(other.directions)
    return float(1 - one.directions @ other.directions / lengths) if lengths > 0 else math.nan


def resultant(sums: Sums) -> float:
    """Return ‖mean unit vector‖: 1 when all rows point alike. NaN without directions."""
    return float(np.linalg.norm(sums.directions) / sums.norms.rows) if sums.has_directions else math.nan
