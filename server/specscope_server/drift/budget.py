"""What the rules cost in false alarms: a budget, and what measured rates make of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specscope_server.drift import measured
from specscope_server.drift.facts import Facts
from specscope_server.drift.schemas import FalseAlarms

BUDGET_PER_MONTH = 1.0
MONTH_MS = 30 * 86_400_000
RULE_OF_THREE = 3.0
"""No event in n trials: the 95 % bound of its rate is 3/n (Hanley and Lippman-Hand 1983)."""
Z = 1.959964
"""Of a 95 % interval."""
KNOWN = "If windows err independently, that is at most {expected:.2g} false alarms a month here."
UNKNOWN = (
    "How many false alarms a month that is here is not known yet: it takes two windows of a slot and phase."
)


def wilson(alarms: int, windows: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval (1927) of a share."""
    share, spread = alarms / windows, Z * Z / windows
    root = Z * math.sqrt(share * (1 - share) / windows + spread / (4 * windows))
    low, high = ((share + spread / 2 + side) / (1 + spread) for side in (-root, root))
    return max(low, 0.0), min(high, 1.0)


def bound_of(alarms: int, windows: int) -> float:
    """Return the upper end of a rate's 95 % interval: 3/n for none, else Wilson's, as in the study."""
    return wilson(alarms, windows)[1] if alarms else RULE_OF_THREE / windows


def false_alarms(windows: Sequence[Sequence[Facts]], slots: int) -> FalseAlarms:
    """Return the false alarms to be expected a month; ``windows`` are those of each slot and phase."""
    per_month = _windows_per_month(windows)
    bound = bound_of(measured.ALARMS, measured.WINDOWS)
    kinds = 1 - 0.05 ** (1 / measured.KINDS_OF_TEXT)
    expected = _expected(per_month, max(len(windows) / slots, 1.0) if slots else 1.0, slots, bound)
    here = UNKNOWN if expected is None else KNOWN.format(expected=expected)
    words = (
        "An alarm needs the same fault in 2 of 3 windows, or in two phases at once. The verdict was false in "
        f"{measured.ALARMS:,} of {measured.WINDOWS:,} measured windows, so one errs in at most {bound:.3%} "
        f"(95 % bound). {here} The measured windows were of {measured.KINDS_OF_TEXT} kinds of text: up to "
        f"{kinds:.0%} of other kinds might still mislead window after window (95 % bound), where 2 of 3 "
        "would not help."
    )
    return FalseAlarms(
        budget_per_month=BUDGET_PER_MONTH, expected_per_month=expected, windows_per_month=per_month,
        words=words,
    )  # fmt: skip


def _expected(per_month: float | None, phases: float, slots: int, bound: float) -> float | None:
    """Return false alarms a month if windows err independently; None: their pace is not known yet."""
    if per_month is None:
        return None
    places = slots * phases * per_month
    pairs = slots * phases * (phases - 1) / 2 * per_month
    return (2 * places + pairs) * bound**2


def _windows_per_month(windows: Sequence[Sequence[Facts]]) -> float | None:
    """Return how many windows of one slot and phase end in a month, at the pace of the newest ones."""
    paces = []
    for each in windows:
        if len(each) > 1:
            span = each[-1].plan.to_ms - each[0].plan.to_ms
            if span > 0:
                paces.append((len(each) - 1) * MONTH_MS / span)
    return max(paces) if paces else None
