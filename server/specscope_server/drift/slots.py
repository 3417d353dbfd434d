"""One slot over all phases, and the whole: the composite verdict."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_server.acceptance.schemas import Verdict
from specscope_server.drift.cells import Judgement
from specscope_server.drift.schemas import Assignment, CellState, Invariant, Resolution, SlotVerdict
from specscope_server.drift.words import (
    PHASE_WORDS,
    UNDECIDED,
    fault_sentence,
    listed,
    measured_of,
    place_words,
    shift_words,
)
from specscope_server.drift.yardsticks import Yardstick

WORST_FIRST = (
    CellState.WRONG, CellState.SUSPECTED, CellState.SAME, CellState.NOT_ENOUGH, CellState.NOT_COMPARABLE,
    CellState.NO_DATA,
)  # fmt: skip
SLOTS_ONLY = (
    "Only the slots of training and the last state are known: swaps and slot shifts are seen, a boundary "
    "off by one is not. A calibration of all boundaries names it."
)
NOTHING = "There is no reference to compare with; only what cannot be in any healthy state is looked for."
ALL_BOUNDARIES = "Every boundary of the target is known, so an off-by-one is named."
RESOLUTION_NOTES = {
    Resolution.BOUNDARIES: ALL_BOUNDARIES, Resolution.SLOTS: SLOTS_ONLY, Resolution.NONE: NOTHING,
}  # fmt: skip


SAID = ("claims", "training_boundaries")
"""Findings about what configurations say."""


def slot_verdict(cells: Sequence[Judgement], yard: Yardstick) -> SlotVerdict:
    """Return what the phases of one slot say together.

    A fault that two phases name is confirmed even if each has seen it in one window only: their rows are
    others.
    """
    worst = min(cells, key=lambda cell: WORST_FIRST.index(cell.state))
    state = worst.state
    if state == CellState.SUSPECTED and _named_twice(worst, cells):
        state = CellState.WRONG
    measured = measured_of(worst, yard)
    captured = {cell.captured for cell in cells if cell.newest is not None}
    return SlotVerdict(
        slot=worst.slot, state=state, fault=worst.fault, headline=_headline(worst, state, yard),
        trained_boundary=yard.trained(worst.slot),
        captured_boundary=captured.pop() if len(captured) == 1 else None,
        measured_boundary=measured, evidence=_evidence(cells, yard),
    )  # fmt: skip


def _named_twice(worst: Judgement, cells: Sequence[Judgement]) -> bool:
    alike = [
        cell for cell in cells
        if cell.state == CellState.SUSPECTED and (cell.fault, cell.place) == (worst.fault, worst.place)
    ]  # fmt: skip
    return len(alike) >= 2


def _headline(worst: Judgement, state: CellState, yard: Yardstick) -> str:
    slot = f"Slot {worst.slot}"
    if state == CellState.SAME:
        where = f": {place_words(worst.place, yard)}" if worst.place is not None else ""
        return f"{slot} is what the draft was trained on{where}"
    if state == CellState.NO_DATA:
        return f"{slot}: no rows"
    if state == CellState.NOT_COMPARABLE:
        return f"{slot}: nothing fits to compare with"
    if state == CellState.NOT_ENOUGH:
        missing = worst.newest.judged.missing if worst.newest else ()
        if worst.newest and not missing:
            return f"{slot}: {UNDECIDED}; a paired replay decides"
        return f"{slot}: not enough{f' ({missing[0]})' if missing else ''}"
    trained = yard.trained(worst.slot)
    told = f"; trained on boundary {trained}" if trained is not None else ""
    maybe = "may be wrong: it " if state == CellState.SUSPECTED else ""
    return f"{slot} {maybe}{fault_sentence(worst, yard, worst.fault)}{told}"


def _evidence(cells: Sequence[Judgement], yard: Yardstick) -> list[str]:
    found = [
        f"the engine says that it captures boundary {cell.captured}, and hands on boundary {measured}"
        for cell in cells
        if cell.state in (CellState.WRONG, CellState.SUSPECTED) and cell.captured is not None
        and (measured := measured_of(cell, yard)) is not None and measured != cell.captured
    ][:1]  # fmt: skip
    for cell in sorted(cells, key=lambda cell: WORST_FIRST.index(cell.state)):
        newest = cell.newest
        if newest is None or cell.state in (CellState.NOT_COMPARABLE, CellState.NO_DATA):
            continue
        votes = f"{cell.vote.votes_for} of {cell.vote.votes} windows"
        rows = f"{newest.rows} rows of {newest.requests} requests in the newest"
        said = place_words(cell.place, yard) if cell.place is not None else "no one boundary"
        found.append(f"{PHASE_WORDS[cell.phase]}: {said}, {votes}, {rows}")
    return found


def verdict_of(
    slots: Sequence[SlotVerdict], findings: Sequence[Invariant], assignment: Assignment | None,
    yard: Yardstick, missing: Sequence[str],
) -> Verdict:  # fmt: skip
    """Return the verdict of the whole, in words."""
    wrong = [slot for slot in slots if slot.state == CellState.WRONG]
    failed = [finding for finding in findings if finding.passed is False]
    reasons = [slot.headline for slot in slots if slot.state != CellState.SAME]
    reasons += [f"{finding.title}: {finding.message}" for finding in failed]
    if assignment is not None and assignment.speaks and (wrong or failed):
        reasons.insert(0, assignment.words)
    if wrong:
        return Verdict(state="bad", headline=_wrong_headline(wrong, slots), reasons=reasons)
    is_measured = yard.resolution == Resolution.BOUNDARIES and all(
        slot.state == CellState.SAME and slot.measured_boundary is not None for slot in slots
    )
    if failed:
        # What the states are outranks what somebody wrote down.
        is_only_said = is_measured and all(finding.kind in SAID for finding in failed)
        state = "warn" if is_only_said else "bad"
        return Verdict(state=state, headline=f"{failed[0].title}: {failed[0].message}", reasons=reasons)
    suspected = [slot for slot in slots if slot.state == CellState.SUSPECTED]
    if suspected:
        headline = f"{suspected[0].headline}. One window says so; a second is awaited"
        return Verdict(state="warn", headline=headline, reasons=reasons)
    same = [slot for slot in slots if slot.state == CellState.SAME]
    if same and len(same) == len(slots):
        return Verdict(state="ok", headline=_same_headline(same, yard), reasons=_limits(yard))
    if same:
        known = listed([slot.slot for slot in same])
        headline = f"Slots {known} are what the draft was trained on; of the others nothing can be said yet"
        return Verdict(state="unknown", headline=headline, reasons=reasons)
    why = missing[0] if missing else (slots[0].headline if slots else "no states were profiled")
    return Verdict(state="unknown", headline=f"Nothing can be said yet: {why}", reasons=reasons)


def _limits(yard: Yardstick) -> list[str]:
    return [] if yard.resolution == Resolution.BOUNDARIES else [RESOLUTION_NOTES[yard.resolution]]


def _same_headline(same: Sequence[SlotVerdict], yard: Yardstick) -> str:
    boundaries = [slot.measured_boundary for slot in same]
    if yard.resolution == Resolution.BOUNDARIES and None not in boundaries:
        return f"The draft sees what it was trained on: boundaries {listed(boundaries)}"
    return "The draft sees what it was trained on, as far as the slots of training can tell"


def _wrong_headline(wrong: Sequence[SlotVerdict], slots: Sequence[SlotVerdict]) -> str:
    """Return one sentence; slots that are off by the same number of layers are told as one."""
    shifts = {shift_words(slot.measured_boundary, slot.trained_boundary) for slot in wrong}
    if len(wrong) == len(slots) > 1 and len(shifts) == 1 and (shift := shifts.pop()):
        deep = listed([slot.measured_boundary for slot in wrong])
        return (
            f"All slots are {shift}: {deep}, trained on {listed([slot.trained_boundary for slot in wrong])}"
        )
    measured = [slot.measured_boundary for slot in slots]
    trained = [slot.trained_boundary for slot in slots]
    if len(wrong) > 1 and None not in measured and None not in trained:
        how = _how(measured, trained)
        return f"The slots are boundaries {listed(measured)}, trained on {listed(trained)}{how}"
    more = f"; {len(wrong) - 1} more of {len(slots)} slots are wrong" if len(wrong) > 1 else ""
    return f"{wrong[0].headline}{more}"


def _how(measured: Sequence[int | None], trained: Sequence[int | None]) -> str:
    if 0 in measured and 0 not in trained:
        return f": slot {measured.index(0)} is the embedding"
    is_reordered = measured != trained and set(measured) == set(trained)
    return ": the right layers in another order" if is_reordered else ""
