"""Which requests stand apart from the others, by their accept length (pure).

A request of m cycles with A accepted drafts has x = A / m drafts a cycle (τ = 1 + x). Its peers, the requests
of the same launch and depth, have together the distribution p of accepted drafts per cycle, with mean μ and
variance v. How unlikely x is, if its cycles were drawn like those of its peers, is bounded by Chernoff:

P(mean of m cycles as far out as x) ≤ exp(−m · I(x)),   I(x) = sup_θ (θ x − ln Σ_j p_j e^{θ j})

I is also half the likelihood ratio of the tilted p, so that this is no approximation by a normal curve: it
holds near 1 and near K + 1, where few values are possible. See Dembo and Zeitouni, Large Deviations, 2.1.

Requests differ by more than chance (prompts are not alike), so m is replaced by the cycles that it is worth
among its peers, m / (1 + m b² / v). The spread b between requests is estimated robustly: it makes the median
of |x − μ| / √(v/m + b²) what it is for a normal curve, 0.6745, so that a few outliers do not hide themselves.

Each request is judged on both sides (factor 2) and n at once (Bonferroni's factor n): of 1 / `FALSE_ALARMS`
windows without outliers, one gives a false alarm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Floats

MIN_CYCLES = 20
"""Requests with fewer cycles are not judged: chance alone takes them anywhere."""
MIN_PEERS = 30
"""Fewer judged requests of one launch and depth do not show how much requests differ."""
FALSE_ALARMS = 0.05
"""Chance of any false alarm in the whole window."""
_MEDIAN_OF_NORMAL = 0.6745
_TILTS = np.concatenate([-np.geomspace(60, 1e-3, 600), [0.0], np.geomspace(1e-3, 60, 600)])


@dataclass(frozen=True, slots=True)
class Peers:
    """What the requests of one launch and depth have in common."""

    shares: Floats
    """p_j, shape (K + 1,)."""
    mean: float
    variance: float
    """Of accepted drafts within a cycle."""
    spread: float
    """b, standard deviation between requests in drafts a cycle."""


def peers_of(total: NDArray[np.int64], accepted: Floats, cycles: Floats) -> Peers:
    """Return what peers have in common; ``total`` is the sum of their h, the others are by judged request."""
    shares = total / total.sum()
    values = np.arange(len(shares))
    mean = float(shares @ values)
    variance = float(shares @ (values - mean) ** 2)
    return Peers(shares, mean, variance, spread_between(accepted / cycles - mean, variance / cycles))


def spread_between(distances: Floats, variances: Floats) -> float:
    """Return b ≥ 0 so that median |distance| / √(variance + b²) is that of a normal curve."""
    low, high = 0.0, float(np.max(distances**2, initial=0.0)) / _MEDIAN_OF_NORMAL**2
    for _ in range(50):
        middle = (low + high) / 2
        scale = np.sqrt(variances + middle)
        typical = float(np.median(np.abs(distances) / np.where(scale > 0, scale, np.inf)))
        low, high = (middle, high) if typical > _MEDIAN_OF_NORMAL else (low, middle)
    return float(np.sqrt((low + high) / 2))


def log_chance(peers: Peers, accepted: Floats, cycles: Floats) -> Floats:
    """Return ln of the two-sided bound for each request, at most 0."""
    if peers.variance <= 0:
        return np.zeros(len(cycles))
    worth = cycles / (1 + cycles * peers.spread**2 / peers.variance)
    bound = np.log(2.0) - worth * rate(peers.shares, accepted / cycles)
    return np.asarray(np.minimum(bound, 0.0))


def rate(shares: Floats, at: Floats) -> Floats:
    """Return Cramér's rate function I at mean drafts per cycle; shares has shape (K + 1,)."""
    seen = np.flatnonzero(shares > 0)
    weights = np.log(shares[seen]) + np.outer(_TILTS, seen)
    peak = weights.max(axis=1, keepdims=True)
    log_sum = peak[:, 0] + np.log(np.exp(weights - peak).sum(axis=1))
    tilted = np.exp(weights - log_sum[:, None])
    means = tilted @ seen
    rates = np.maximum(_TILTS * means - log_sum, 0.0)
    return np.asarray(np.interp(at, means, rates))


def is_outlier(log_chances: Floats, judged: int) -> NDArray[np.bool_]:
    """Return which requests stand apart when ``judged`` are judged at once."""
    return np.asarray(log_chances + np.log(max(judged, 1)) < np.log(FALSE_ALARMS))
