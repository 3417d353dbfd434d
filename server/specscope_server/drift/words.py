"""What is said of slots and of the whole, in words: first what is wrong, then by how much, then why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specscope_collectors.states.rules import GROSS_DIRECTION, GROSS_NORM, Fault
from specscope_server.drift.schemas import CellState
from specscope_server.drift.yardsticks import Yardstick

if TYPE_CHECKING:
    from specscope_server.drift.cells import Judgement

UNDECIDED = "the two statistics do not name one boundary that the states fit"
PHASE_WORDS = {
    "prefill": "prefill",
    "verify_accepted": "verification, accepted",
    "verify_rejected": "verification, rejected",
}
_FAULTS = {
    Fault.NONE: "no fault",
    Fault.WRONG_BOUNDARY: "is another boundary",
    Fault.OTHER_SLOT: "is another slot of training",
    Fault.EMBEDDING: "is the embedding",
    Fault.POST_NORM: "is a state behind a norm",
    Fault.GROSS_NORM: "has norms of another size",
    Fault.GROSS_DIRECTION: "has other directions",
    Fault.NOT_FINITE: "has rows that are not finite",
    Fault.ZERO_ROWS: "has rows of zeros",
    Fault.DUPLICATES: "has equal rows of different tokens",
    Fault.RANKS_DISAGREE: "ranks hold different states",
    Fault.PHASES_DISAGREE: "prefill and verification differ",
    Fault.CLAIMS_DISAGREE: "configurations disagree",
}
_REASONS = {
    Fault.GROSS_NORM: "a missing residual, a state behind a norm, or another layer",
    Fault.GROSS_DIRECTION: "a rotated or permuted state, or another model",
    Fault.NOT_FINITE: "overflow in the target",
    Fault.ZERO_ROWS: "a buffer that nobody filled",
    Fault.DUPLICATES: "a stale buffer, or padding that is read",
    Fault.EMBEDDING: "layer id −1, or a capture before the first layer",
}


def fault_words(fault: Fault) -> str:
    """Return a fault in a few words."""
    return _FAULTS[fault]


def place_words(place: int | None, yard: Yardstick) -> str:
    """Return the name of a place of the bank."""
    return yard.bank.places[place].name if yard.bank and place is not None else "no place of the reference"


def shift_words(measured: int | None, trained: int | None) -> str:
    """Return how many layers a slot is off, in words; empty where that is not known."""
    if measured is None or trained is None or measured == trained:
        return ""
    layers = abs(measured - trained)
    many = {1: "one layer", 2: "two layers"}.get(layers, f"{layers} layers")
    return f"{many} too {'deep' if measured > trained else 'shallow'}"


def measured_of(judgement: Judgement, yard: Yardstick) -> int | None:
    """Return the boundary that a slot was measured to be; None: no one boundary."""
    if judgement.fault == Fault.EMBEDDING:
        return 0
    if judgement.place is None or yard.bank is None:
        return None
    return yard.bank.places[judgement.place].boundary


def cell_words(judgement: Judgement, yard: Yardstick) -> str:
    """Return one sentence about a slot in a phase."""
    state, fault, newest = judgement.state, judgement.fault, judgement.newest
    if state == CellState.NO_DATA or newest is None:
        return "no rows"
    if state == CellState.NOT_COMPARABLE:
        return f"nothing of hidden size {newest.hidden_size} to compare with"
    if state == CellState.SAME:
        if judgement.place is None:
            return "no fault found; the two statistics do not agree on a boundary"
        return f"as trained: {place_words(judgement.place, yard)} is nearest"
    if state == CellState.NOT_ENOUGH:
        missing = newest.judged.missing
        return f"not enough: {missing[0]}" if missing else "not enough rows"
    return fault_sentence(judgement, yard, fault)


def fault_sentence(judgement: Judgement, yard: Yardstick, fault: Fault) -> str:
    """Return a fault with its numbers."""
    newest = judgement.newest
    if fault in (Fault.WRONG_BOUNDARY, Fault.OTHER_SLOT):
        shift = shift_words(measured_of(judgement, yard), yard.trained(judgement.slot))
        return f"is {place_words(judgement.place, yard)}{f', {shift}' if shift else ''}"
    if newest is not None and fault == Fault.GROSS_NORM and newest.judged.gross_norm is not None:
        return (
            f"has norms that differ by a factor of {_factor(newest.judged.gross_norm)} (W₁ "
            f"{newest.judged.gross_norm:.2f} > {GROSS_NORM:.2f} nats): {_REASONS[fault]}"
        )
    if newest is not None and fault == Fault.GROSS_DIRECTION and newest.judged.gross_direction is not None:
        return (
            f"has other directions though norms fit (1 − cos {newest.judged.gross_direction:.2f} > "
            f"{GROSS_DIRECTION:.2f}): {_REASONS[fault]}"
        )
    why = _REASONS.get(fault)
    failed = [each.message for each in judgement.invariants if each.passed is False]
    return f"{_FAULTS[fault]}{f' ({failed[0]})' if failed else ''}{f': {why}' if why else ''}"


def _factor(nats: float) -> str:
    return f"{2.718281828459045**nats:.3g}"


def listed(numbers: Sequence[object]) -> str:
    """Return "2, 15 and 27"."""
    texts = [str(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}" if texts else ""
