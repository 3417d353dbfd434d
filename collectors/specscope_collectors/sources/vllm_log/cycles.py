"""How many cycles stand behind what vLLM printed of an interval (pure).

The number is not printed. n cycles fit if every printed figure is what n gives, rounded as it is printed:

* mean acceptance length = 1 + accepted / n, two decimals;
* each rate by position = c / n with a whole c, three decimals, and the c add up to the accepted drafts;
* no cycle proposes more drafts than there are positions: n ≥ drafted / K.

It is taken only if exactly one n fits: then the counts are exact, not estimated. In intervals of up to a few
hundred cycles that is the rule. Where the method is known to propose K drafts in every cycle, n is
drafted / K if that fits, whatever else does. Counts by position are taken if only one whole c fits each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from specscope_collectors.sources.vllm_log.lines import LENGTH_HALF, RATE_HALF, Interval

SLACK = 1e-9
MAX_TRIED = 20_000


@dataclass(frozen=True, slots=True)
class Cycles:
    """Exact counts of one interval."""

    cycles: int
    by_position: tuple[int, ...] = ()
    """Accepted drafts by position; empty where they are not certain."""


def derived(interval: Interval, *, is_depth_fixed: bool = False) -> Cycles | None:
    """Return the only counts that fit; None if several do, or none."""
    if interval.length is None or not 0 < interval.accepted <= interval.drafted:
        return None
    low, high = _bounds(interval)
    depth = len(interval.rates)
    if is_depth_fixed and depth and interval.drafted % depth == 0:
        n = interval.drafted // depth
        return Cycles(n, _positions(interval, n)) if low <= n <= high and _fits(interval, n) else None
    if not low <= high < low + MAX_TRIED:
        return None
    fitting = [n for n in range(low, high + 1) if _fits(interval, n)]
    if len(fitting) != 1:
        return None
    return Cycles(fitting[0], _positions(interval, fitting[0]))


def _bounds(interval: Interval) -> tuple[int, int]:
    """Return the range of n that the mean acceptance length leaves."""
    assert interval.length is not None
    per_cycle = interval.length - 1
    least = math.ceil(interval.accepted / (per_cycle + LENGTH_HALF) - SLACK)
    most = (
        math.floor(interval.accepted / (per_cycle - LENGTH_HALF) + SLACK)
        if per_cycle > LENGTH_HALF
        else least + MAX_TRIED
    )
    depth = len(interval.rates)
    return max(least, -(-interval.drafted // depth) if depth else 1, 1), min(most, interval.drafted)


def _fits(interval: Interval, n: int) -> bool:
    ranges = [_range(rate, n) for rate in interval.rates]
    if any(low > high for low, high in ranges):
        return False
    least, most = sum(low for low, _ in ranges), sum(high for _, high in ranges)
    return not ranges or least <= interval.accepted <= most


def _range(rate: float, n: int) -> tuple[int, int]:
    """Return the least and the largest whole c with c / n printed as ``rate``."""
    low = max(math.ceil(n * (rate - RATE_HALF) - SLACK), 0)
    return low, min(math.floor(n * (rate + RATE_HALF) + SLACK), n)


def _positions(interval: Interval, n: int) -> tuple[int, ...]:
    ranges = [_range(rate, n) for rate in interval.rates]
    if any(low != high for low, high in ranges):
        return ()
    counts = tuple(low for low, _ in ranges)
    falls = all(later <= earlier for earlier, later in pairwise(counts))
    return counts if falls and sum(counts) == interval.accepted else ()
