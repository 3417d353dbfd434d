"""Acceptance from counts (pure). Words and formulas: τ = tokens emitted per cycle, d = accepted drafts of a
cycle.

τ = 1 + Σd / Σcycles                      from counts of requests
τ = (Δtokens − Δrequests) / Δcycles       from counters: prefill makes the first token of each request
strict draft acceptance = Σd / Σproposed  with proposed = cycles × (D − 1)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specscope_server.series.statistics import combine

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

MIN_CYCLES = 200
"""Fewer cycles than this say little: with 200, a rate of 50 % is known to about ± 7 points."""
MIN_WINDOWS = 3
"""Fewer samples of the engine's own window means than this say little."""
RESAMPLES = 500


@dataclass(frozen=True, slots=True)
class Ratio:
    """Σy / Σx with its 95 % interval; None where nothing can be said."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""

    def shifted(self, by: float) -> Ratio:
        """Return the ratio plus a constant (τ = 1 + Σd/Σcycles)."""
        low, high = (None if bound is None else bound + by for bound in (self.low, self.high))
        return Ratio(None if self.value is None else self.value + by, low, high, self.method)


def derived_accepted(tokens: float, requests: float, cycles: float) -> float:
    """Return the accepted drafts behind counters: each cycle gives its bonus token, each request one at
    prefill.

    Drafts accepted past a request's stop are never output, so this is at most Σd (40 tokens, 1 request, 18
    cycles: 21 derived of 24 accepted).
    """
    return tokens - requests - cycles


def strict_acceptance(accept_length: float, draft_tokens: float) -> float | None:
    """Return (τ − 1) / (D − 1); None when D ≤ 1 (nothing was proposed) or the result is no share."""
    if draft_tokens <= 1:
        return None
    share = (accept_length - 1) / (draft_tokens - 1)
    return share if -1e-9 <= share <= 1 + 1e-9 else None


def longest_unseen(length: float, depth: float, cycles_per_request: float) -> float:
    """Return the largest τ of cycles whose output, cut off where requests end, has this accept length.

    Drafts that are accepted past the end of a request are never output. With L tokens a cycle (1 to K + 1,
    mean τ), a request overshoots its end by E[L²]/τ − 1 at most (Lorden 1970, for whole numbers), so by no
    more than (K + 1)(1 − 1/τ). With c cycles a request the largest τ solves τ − (K + 1)(1 − 1/τ)/c = length.
    """
    a = (depth + 1) / cycles_per_request
    both = a + length
    return min(max((both + math.sqrt(max(both * both - 4 * a, 0.0))) / 2, length), depth + 1)


def clustered_ratio(n: float, sums: tuple[float, float, float, float, float]) -> Ratio:
    """Return Σy/Σx with an interval that treats each request as one cluster.

    ``sums`` = (Σx, Σy, Σx², Σxy, Σy²) over n requests. Linearised ratio estimator (Cochran, Sampling
    Techniques, ch. 6): var = n/(n−1) · Σ(y − R x)² / (Σx)².
    """
    x, y, xx, xy, yy = sums
    if x <= 0:
        return Ratio(None)
    ratio = y / x
    if n < 2:
        return Ratio(ratio)
    residual = max(yy - 2 * ratio * xy + ratio * ratio * xx, 0.0)
    half = 1.96 * float(np.sqrt(n / (n - 1) * residual)) / x
    return Ratio(ratio, ratio - half, ratio + half, "linearised ratio, clustered by request")


def bootstrapped_ratio(y: Floats, x: Floats) -> Ratio:
    """Return Σy/Σx with a 95 % interval from a circular block bootstrap over scrapes.

    y, x: shape (buckets,); NaN = not observed. Blocks of ⌈n^⅓⌉ neighbours keep the correlation in time
    (Politis and Romano 1992). The random numbers are seeded: reading twice gives the same interval.
    """
    seen = ~(np.isnan(y) | np.isnan(x)) & (x > 0)
    y, x = y[seen], x[seen]
    if not len(x):
        return Ratio(None)
    value = float(y.sum() / x.sum())
    if len(x) < 5:
        return Ratio(value)
    block = int(np.ceil(len(x) ** (1 / 3)))
    starts = np.random.default_rng(20_260_301).integers(0, len(x), (RESAMPLES, -(-len(x) // block)))
    resampled = _block_sums(y, block)[starts].sum(axis=1) / _block_sums(x, block)[starts].sum(axis=1)
    low, high = _widened(value, np.quantile(resampled, (0.025, 0.975)), len(x) / block)
    return Ratio(value, low, high, "block bootstrap over scrapes (requests are not known)")


def _widened(value: float, quantiles: Floats, blocks: float) -> tuple[float, float]:
    """Return the bounds moved outward: resampling few blocks shows too little spread.

    By √(m/(m − 1)) for the variance of m resampled blocks and t(m − 1)/z for estimating it from them. Without
    this, 6 scrapes cover the truth in 76 % of cases instead of 95 %.
    """
    wider = float(np.sqrt(blocks / (blocks - 1))) * student_t(blocks - 1) / 1.96
    low, high = (value + wider * (float(bound) - value) for bound in quantiles)
    return max(low, min(value, 0.0)), high


def student_t(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t, by Cornish and Fisher's expansion (within 4 % from 2 on).

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z = 1.959964
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def _block_sums(values: Floats, block: int) -> Floats:
    """Return for each place the sum of the ``block`` values from there on, going round at the end."""
    total = np.concatenate(([0.0], np.cumsum(np.concatenate((values, values[: block - 1])))))
    return np.asarray(total[block:] - total[:-block])


def active_buckets(running: Floats, growth: Floats, live_growth_known: bool) -> tuple[Flags, Flags]:
    """Return (active, idle) per bucket; what is neither was not observed.

    ``running``: requests being decoded; ``growth``: of any token or request counter; NaN = not observed.
    Idle = nothing runs and nothing grew. Where the running requests are not known, only a counter that grows
    with each cycle (``live_growth_known``) can show idleness; else the bucket counts as active.
    """
    observed = ~np.isnan(running) | ~np.isnan(growth)
    grew = np.nan_to_num(growth) > 0
    quiet = np.where(np.isnan(running), live_growth_known, running == 0)
    idle = observed & ~grew & quiet
    return observed & ~idle, idle


def time_weighted(values: Floats, active: Flags) -> tuple[float | None, int]:
    """Return (mean over the active buckets with a value, how many those are); buckets are equally long."""
    used = values[active & ~np.isnan(values)]
    return (float(used.mean()), len(used)) if len(used) else (None, 0)


def pooled(means: Iterable[tuple[float | None, int]]) -> tuple[float | None, int]:
    """Return (mean, how many) of parts of which each is given so; a part without a mean does not count."""
    known = [(mean, n) for mean, n in means if mean is not None]
    weight = sum(n for _, n in known)
    return (sum(mean * n for mean, n in known) / weight, weight) if weight else (None, 0)


def mean_over(rows: list[Floats], buckets: int) -> Floats:
    """Return the mean over rows per bucket, NaN where no row has a value."""
    return combine(rows, "mean") if rows else np.full(buckets, np.nan)


def sum_over(rows: list[Floats], buckets: int) -> Floats:
    """Return the sum over rows per bucket, NaN where no row has a value."""
    return combine(rows, "sum") if rows else np.full(buckets, np.nan)
