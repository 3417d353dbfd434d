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
    number = numbers.accept_length(context)
    ends = _ends(context)
    if ends is None:
        return number
    depth, cycles = ends
    return _moved(number, lambda length: longest_unseen(length, depth, cycles))


def draft_acceptance_at_most(context: Context) -> Number:
    """Return the strict share; where it is derived from finished requests, the largest that they allow."""
    number = numbers.draft_acceptance(context)
    ends = _ends(context)
    if ends is None:
        return number
    depth, cycles = ends
    return _moved(number, lambda share: (longest_unseen(1 + share * depth, depth, cycles) - 1) / depth)


def _ends(context: Context) -> tuple[float, float] | None:
    """Return (K, cycles of a request); None where drafts are counted themselves, or K is not known."""
    counts = context.measured.counters
    if context.measured.evidence is not Evidence.COUNTERS or not counts.proposed or not counts.requests:
        return None
    return counts.proposed / counts.calls, counts.calls / counts.requests


def _moved(number: Number, move: Callable[[float], float]) -> Number:
    moved = {
        name: None if value is None else move(value)
        for name, value in (("value", number.value), ("low", number.low), ("high", number.high))
    }
    return number.model_copy(update={**moved, "definition": number.definition + DEFINITION})
