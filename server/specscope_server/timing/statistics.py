"""Arithmetic of cycle times (pure). T_c = cycle, T_v = verify, T_ar = a plain decode step, τ = tokens/cycle.

speed-up     S = τ · T_ar / T_c          break-even   τ* = T_c / T_ar
rate         R = tokens / active time; x ms less a cycle: R' = R · T / (T − x), T = active time per cycle
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specscope_server.acceptance.statistics import Floats, Ratio, bootstrapped_ratio

MIN_CYCLES = 200
"""Fewer cycles than this say little about a time."""
BATCH_BUCKETS = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129-256", "257+")
"""Requests decoded together, in powers of two, as the probe labels them."""
MAX_BISECTIONS = 60


def batch_bucket(requests: float) -> str:
    """Return the bucket of a batch of about so many requests; a mean is rounded, less than 1 counts as 1."""
    whole = max(round(requests), 1)
    return BATCH_BUCKETS[min((whole - 1).bit_length(), len(BATCH_BUCKETS) - 1)]


def bucket_place(bucket: str) -> int:
    """Return the place of a bucket in order of size; of one that is none, behind all."""
    return BATCH_BUCKETS.index(bucket) if bucket in BATCH_BUCKETS else len(BATCH_BUCKETS)


def total(values: Floats) -> float:
    """Return the sum of what was observed."""
    return float(np.nansum(values))


def per_cycle_ms(seconds: Floats, cycles: Floats) -> Ratio:
    """Return milliseconds per cycle with the interval of a block bootstrap over scrapes.

    Numerator and denominator are summed first, so long and short stretches count by their cycles. Where
    cycles were counted and the phase was not, it took no time: its counter appears with its first growth.
    """
    counted = total(cycles)
    if not counted > 0 or np.isnan(seconds).all():
        return Ratio(None)
    found = bootstrapped_ratio(np.where(np.isnan(cycles), np.nan, np.nan_to_num(seconds)), cycles)
    low, high = (None if bound is None else 1_000 * bound for bound in (found.low, found.high))
    return Ratio(1_000 * total(seconds) / counted, low, high, found.method)


def relative_change(before: Ratio, after: Ratio) -> Ratio:
    """Return after/before − 1 with an interval from both (independent) intervals, on the scale of logarithms.

    Method of variance estimates recovery: G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008).
    """
    a, b = before.value, after.value
    if a is None or b is None or a <= 0 or b <= 0:
        return Ratio(None)
    change = math.log(b / a)
    bounds = (before.low, before.high, after.low, after.high)
    if any(bound is None or bound <= 0 for bound in bounds):
        return Ratio(math.expm1(change))
    a_low, a_high, b_low, b_high = (math.log(bound) for bound in bounds if bound is not None)
    down = math.hypot(math.log(b) - b_low, a_high - math.log(a))
    up = math.hypot(b_high - math.log(b), math.log(a) - a_low)
    method = "block bootstrap over scrapes of each side, joined on the scale of logarithms"
    return Ratio(math.expm1(change), math.expm1(change - down), math.expm1(change + up), method)


def expected_experts(tokens: float, experts: int, per_token: int) -> float:
    """Return how many distinct experts ``tokens`` tokens touch in one layer: E · (1 − (1 − k/E)^t).

    An upper bound: routing is taken as independent, and neighbours in a text choose alike.
    """
    return float(experts * (1 - (1 - per_token / experts) ** tokens))


def chain_length(alpha: float, num_steps: int) -> float:
    """Return τ = (1 − α^{K+1}) / (1 − α) of a chain with one α (Leviathan et al. 2023, arXiv 2211.17192)."""
    return sum(alpha**k for k in range(num_steps + 1))


def constant_alpha(accept_length: float, num_steps: int) -> float | None:
    """Return the one α whose chain of K drafts gives this τ; None when τ is outside 1…K + 1."""
    if num_steps < 1 or not 1 <= accept_length <= num_steps + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(MAX_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if chain_length(middle, num_steps) < accept_length else (low, middle)
    return (low + high) / 2


def length_of(alphas: Sequence[float]) -> float:
    """Return τ = 1 + Σ S_k of conditional acceptances α_1 … α_K."""
    return 1 + float(np.cumprod(alphas).sum()) if len(alphas) else 1.0


def faster_rate(rate: float, active_ms: float, saved_ms: float) -> float | None:
    """Return tokens per second if each cycle took ``saved_ms`` less; ``active_ms``: active time per cycle."""
    return rate * active_ms / (active_ms - saved_ms) if active_ms > saved_ms else None


def rejected_share(accept_length: float, draft_tokens: float) -> float | None:
    """Return (D − τ) / D: of D verified tokens, τ are emitted; None where that is no share."""
    share = (draft_tokens - accept_length) / draft_tokens if draft_tokens > 0 else -1.0
    return share if -1e-9 <= share < 1 else None


def acceptance_ceiling(num_steps: int, draft_tokens: int) -> float | None:
    """Return the highest draft acceptance possible: K of D − 1 drafts lie on one path (1 for a chain)."""
    return min(num_steps / (draft_tokens - 1), 1.0) if draft_tokens > 1 and num_steps > 0 else None
