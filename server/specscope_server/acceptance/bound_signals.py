"""How good a draft can be at most, where what it wins is cut off at the ends of requests.

Counters that grow when requests finish tell what was output. Short answers lower that, however good the draft
is: a rule about the draft asks these, so that a change of the traffic is not taken for one of the draft.
"""

from __future__ import annotations

from collections.abc import Callable

from specscope_server.acceptance import numbers
from specscope_server.acceptance.context import Context
from specscope_server.acceptance.schemas import Evidence, Number
from specscope_server.acceptance.statistics import longest_unseen

DEFINITION = "; of output cut off at the ends of requests, the largest that explains it"


def accept_length_at_most(context: Context) -> Number:
    """Return τ; where it is derived from finished requests, the largest that they allow."""
    return _at_most(context, numbers.accept_length(context), longest_unseen)


def draft_acceptance_at_most(context: Context) -> Number:
    """Return the strict share; where it is derived from finished requests, the largest that they allow."""
    return _at_most(context, numbers.draft_acceptance(context), _largest_share)


def _largest_share(share: float, depth: float, cycles: float) -> float:
    return (longest_unseen(1 + share * depth, depth, cycles) - 1) / depth


def _ends(context: Context) -> tuple[float, float] | None:
    """Return (K, cycles of a request); None where drafts are counted themselves, or K is not known."""
    counts = context.measured.counters
    if context.measured.evidence is not Evidence.COUNTERS or not counts.proposed or not counts.requests:
        return None
    return counts.proposed / counts.calls, counts.calls / counts.requests


def _at_most(context: Context, number: Number, largest: Callable[[float, float, float], float]) -> Number:
    """Return the number with value and bounds as ``largest``(value, K, cycles of a request) has them."""
    ends = _ends(context)
    if ends is None:
        return number
    moved = {
        name: None if value is None else largest(value, *ends)
        for name, value in (("value", number.value), ("low", number.low), ("high", number.high))
    }
    return number.model_copy(update={**moved, "definition": number.definition + DEFINITION})
