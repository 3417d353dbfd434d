"""One slot in one phase: its last windows, what they vote for, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specscope_collectors.states.rules import (
    FULL_REQUESTS,
    FULL_ROWS,
    GROSS_DIRECTION,
    GROSS_NORM,
    LEAST_REQUESTS,
    LEAST_ROWS,
    VOTES,
    Fault,
    Vote,
    is_enough,
    is_full,
    vote,
)
from specscope_server.drift.facts import Facts
from specscope_server.drift.invariants import fault_of, invariants_of, post_norm_of
from specscope_server.drift.numbers import known, nearest_dnll, nearest_vcos
from specscope_server.drift.reading import OTHER
from specscope_server.drift.schemas import Cell, CellState, Invariant, WindowItem
from specscope_server.drift.words import UNDECIDED, cell_words, fault_words
from specscope_server.drift.yardsticks import Yardstick
from specscope_server.kit.timeparse import to_iso


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of a slot and phase, with what it rests on."""

    slot: int
    phase: str
    facts: tuple[Facts, ...]
    """The last windows, oldest first."""
    vote: Vote
    state: CellState
    fault: Fault
    place: int | None
    """That the windows are nearest to, of the yardstick's bank."""
    invariants: tuple[Invariant, ...]

    @property
    def newest(self) -> Facts | None:
        """The newest window."""
        return self.facts[-1] if self.facts else None

    @property
    def captured(self) -> int | None:
        """Boundary that the engine says it captures."""
        return self.newest.plan.boundary if self.newest else None


def judge_cell(
    slot: int, phase: str, facts: Sequence[Facts], yard: Yardstick,
    more_counts: Sequence[Mapping[str, int]] = (), more_rows: int = 0,
) -> Judgement:  # fmt: skip
    """Judge the last windows. ``more_counts`` are invariant counts of rows of the other classes."""
    last = tuple(facts[-VOTES:])
    speaking = [each for each in last if is_enough(each.norms.rows, each.requests) and each.is_comparable]
    votes = vote([each.judged for each in speaking])
    rows = sum(each.rows for each in last) + more_rows
    counts = [*(each.invariants for each in last), *more_counts]
    invariants = invariants_of(counts, rows, yard.trained(slot), phase)
    if last:
        invariants.append(post_norm_of(last[-1].square, last[-1].square_rows))
    broken = fault_of(invariants)
    state = _state(last, speaking, votes) if broken == Fault.NONE else CellState.WRONG
    fault = votes.fault if broken == Fault.NONE else broken
    return Judgement(slot, phase, last, votes, state, fault, votes.place, tuple(invariants))


def _state(last: Sequence[Facts], speaking: Sequence[Facts], votes: Vote) -> CellState:
    if not last:
        return CellState.NO_DATA
    if not last[-1].is_comparable:
        return CellState.NOT_COMPARABLE
    if not speaking:
        return CellState.NOT_ENOUGH
    if votes.fault != Fault.NONE:
        return CellState.WRONG if votes.is_confirmed else CellState.SUSPECTED
    ranked = [each.judged.place for each in speaking if not each.judged.missing]
    named = [place for place in ranked if place is not None]
    # Windows in which the two statistics disagree, or that fit nowhere, are no sign that all is well.
    return CellState.SAME if named and 2 * len(named) >= len(ranked) else CellState.NOT_ENOUGH


def cell_of(judgement: Judgement, yard: Yardstick) -> Cell:
    """Return a judgement as it is shown."""
    newest = judgement.newest
    return Cell(
        slot=judgement.slot, phase=judgement.phase, state=judgement.state, fault=judgement.fault,
        words=cell_words(judgement, yard), trained_boundary=yard.trained(judgement.slot),
        captured_boundary=judgement.captured, rows=newest.rows if newest else 0,
        requests=newest.requests if newest else 0,
        common_rows=newest.judged.common_rows if newest else 0, row_class=OTHER,
        vcos=nearest_vcos(newest, yard) if newest else None,
        dnll=nearest_dnll(newest, yard) if newest else None,
        gross_norm=newest.judged.gross_norm if newest else None, gross_norm_limit=GROSS_NORM,
        gross_direction=newest.judged.gross_direction if newest else None,
        gross_direction_limit=GROSS_DIRECTION,
        votes_for=judgement.vote.votes_for, votes=judgement.vote.votes,
        windows=[_window(each, yard) for each in judgement.facts],
        invariants=list(judgement.invariants), missing=missing_of(judgement, yard),
    )  # fmt: skip


def _window(facts: Facts, yard: Yardstick) -> WindowItem:
    judged, bank = facts.judged, yard.bank

    def boundary(place: int | None) -> int | None:
        return bank.places[place].boundary if bank and place is not None else None

    return WindowItem.model_validate(
        {
            "from": to_iso(facts.plan.from_ms),
            "to": to_iso(facts.plan.to_ms),
            "launch_id": facts.plan.launch_id,
            "rows": facts.rows,
            "requests": facts.requests,
            "common_rows": judged.common_rows,
            "common_ids": judged.common_ids,
            "is_full": is_full(facts.rows, facts.requests),
            "nearest_vcos": boundary(judged.vcos.best),
            "nearest_dnll": boundary(judged.likelihood.best),
            "own_variances": judged.own_dnll is not None,
            "names": bank.places[judged.place].name if bank and judged.place is not None else "",
            "gross_norm": known(judged.gross_norm),
            "gross_direction": known(judged.gross_direction),
            "fault": judged.fault,
            "missing": list(judged.missing),
        }
    )


def missing_of(judgement: Judgement, yard: Yardstick) -> list[str]:
    """Return what would be needed to say more."""
    newest = judgement.newest
    if newest is None:
        return [f"rows of this slot in {judgement.phase} that are neither sinks nor of the first positions"]
    if yard.bank is None:
        return [
            "a reference: make one with specscope reference build PATH, and upload the file on the Drift page"
        ]
    if not newest.is_comparable:
        return [f"a reference of hidden size {newest.hidden_size}: the one here has {yard.hidden_size}"]
    found = list(newest.judged.missing)
    if judgement.state == CellState.NOT_ENOUGH and not found:
        found.append(f"a paired replay (specscope reference replay): {UNDECIDED}")
    if judgement.state == CellState.SUSPECTED:
        found.append(f"a second window that says the same ({fault_words(judgement.fault)})")
    if not found and not is_full(newest.rows, newest.requests):
        found.append(
            f"{FULL_ROWS} rows of {FULL_REQUESTS} requests for the measured rates; from {LEAST_ROWS} rows of "
            f"{LEAST_REQUESTS} requests on it may speak, and has {newest.rows} of {newest.requests}"
        )
    return found
