"""Named ranges → occurrences of phases, one after the other on each thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.traces.columns import Columns, Table
from specscope_collectors.traces.phases import OWN, Mark, batch_size_of


class Phase(StrEnum):
    """Parts of a cycle, and what runs beside cycles."""

    DRAFT = "draft"
    VERIFY = "verify"
    SAMPLING = "sampling"
    """From the end of the target's forward to the beginning of draft-extend."""
    DRAFT_EXTEND = "draft_extend"
    PREFILL = "prefill"
    PREFILL_DRAFT_EXTEND = "prefill_draft_extend"
    """Draft-extend that follows a prefill: no part of a cycle."""
    DECODE = "decode"
    """A plain decode step, without speculation."""
    AFTER_VERIFY = "after_verify"
    """Sampling and draft-extend where they cannot be told apart."""


OF_CYCLE = (Phase.DRAFT, Phase.VERIFY, Phase.SAMPLING, Phase.DRAFT_EXTEND, Phase.AFTER_VERIFY)


@dataclass(slots=True)
class Occurrence:
    """One time that a phase ran, from ``start`` to ``end`` (µs) on the thread or device that says so."""

    phase: Phase
    start: float
    end: float
    thread: int
    batch_size: int = 0


@dataclass(slots=True)
class Found:
    """Occurrences in the order of time, and how many ranges of each kind the trace holds."""

    occurrences: list[Occurrence] = field(default_factory=list)
    ranges: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Range:
    mark: Mark
    start: float
    end: float
    thread: int
    batch_size: int
    is_own: bool
    """Named by the probe, not by the engine."""


def occurrences_of(columns: Columns, table: Table) -> Found:
    """Return the occurrences that the ranges of a table tell of."""
    found = Found()
    threads = table["thread"]
    for thread in np.unique(threads):
        found.occurrences += _of_thread(_ranges(columns, table, threads == thread, int(thread)))
    found.occurrences.sort(key=lambda each: (each.start, each.end))
    for each in found.occurrences:
        if each.phase is Phase.PREFILL_DRAFT_EXTEND:
            found.ranges["draft_extend"] = found.ranges.get("draft_extend", 0) + 1
        elif each.phase is not Phase.SAMPLING:
            found.ranges[each.phase.value] = found.ranges.get(each.phase.value, 0) + 1
    return found


def _ranges(columns: Columns, table: Table, of_thread: NDArray[Any], thread: int) -> Iterator[_Range]:
    """Yield outer ranges before those inside them."""
    start, end = table["ts"], table["ts"] + table["dur"]
    rows = np.flatnonzero(of_thread)
    marks, names = table["mark"], table["name"]
    for row in rows[np.lexsort((-end[rows], start[rows]))]:
        name = columns.names.texts[names[row]]
        yield _Range(
            Mark(marks[row]), float(start[row]), float(end[row]), thread, batch_size_of(name),
            name.startswith(OWN),
        )  # fmt: skip


_PHASES = {
    Mark.DRAFT: Phase.DRAFT,
    Mark.DRAFT_EXTEND: Phase.DRAFT_EXTEND,
    Mark.STEP_VERIFY: Phase.VERIFY,
    Mark.OWN_VERIFY: Phase.VERIFY,
    Mark.STEP_EXTEND: Phase.PREFILL,
    Mark.STEP_DECODE: Phase.DECODE,
    Mark.STEP_DRAFT: Phase.DRAFT,
    Mark.OWN_SAMPLING: Phase.SAMPLING,
}


def _of_thread(ranges: Iterator[_Range]) -> list[Occurrence]:
    """Return the phases that outermost ranges tell of, each with what lies within it."""
    kept: list[Occurrence] = []
    group: list[_Range] = []
    for each in ranges:
        if group and each.start >= group[0].end:
            kept += _phases_of(group)
            group = []
        group.append(each)
    if group:
        kept += _phases_of(group)
    return _with_sampling(kept)


def _phases_of(group: list[_Range]) -> list[Occurrence]:
    """Return what an outermost range and those inside it say.

    A phase may be named twice, by the engine and by the probe, one within the other: the engine's name
    counts. Within the probe's whole verification the forward is the phase, and what follows it sampling.
    """
    outer = group[0]
    same = [each for each in group if _PHASES[each.mark] is _PHASES[outer.mark]]
    engines = [each for each in same if not each.is_own]
    forwards = [each for each in same if each.mark is not Mark.OWN_VERIFY]
    chosen = _whole(engines) or _whole(forwards) or outer
    if outer.mark is not Mark.OWN_VERIFY or chosen is outer:
        return [_occurrence(chosen)]
    sampling = Occurrence(Phase.SAMPLING, chosen.end, outer.end, chosen.thread, chosen.batch_size)
    return [_occurrence(chosen), sampling]


def _whole(ranges: list[_Range]) -> _Range | None:
    """Return the range that holds all others; None if there is none, as with steps that follow each other."""
    if not ranges or any(each.end > ranges[0].end for each in ranges):
        return None
    return ranges[0]


def _occurrence(each: _Range) -> Occurrence:
    return Occurrence(_PHASES[each.mark], each.start, each.end, each.thread, each.batch_size)


def _with_sampling(kept: list[Occurrence]) -> list[Occurrence]:
    """Put sampling between verify and draft-extend, and tell draft-extend after a prefill apart."""
    result: list[Occurrence] = []
    for each in kept:
        before = result[-1] if result else None
        if each.phase is Phase.DRAFT_EXTEND and before is not None:
            if before.phase is Phase.PREFILL:
                each.phase = Phase.PREFILL_DRAFT_EXTEND
            elif before.phase is Phase.VERIFY and each.start > before.end:
                result.append(
                    Occurrence(Phase.SAMPLING, before.end, each.start, each.thread, before.batch_size)
                )
        result.append(each)
    return result


@dataclass(slots=True)
class Cycle:
    """Places of one cycle's phases among the occurrences; ``next_start`` is where the next cycle begins."""

    parts: list[int]
    next_start: int | None = None


def cycles_of(occurrences: list[Occurrence]) -> list[Cycle]:
    """Group occurrences around each verify; a cycle is whole when the next follows without a prefill between.

    Occurrences stand in the order in which the engine ran them.
    """
    cycles: list[Cycle] = []
    pending: list[int] = []
    is_open = False
    for place, each in enumerate(occurrences):
        if each.phase not in OF_CYCLE:
            pending, is_open = [], False
        elif each.phase is Phase.DRAFT:
            _follow(cycles, place, is_open)
            pending, is_open = [place], False
        elif each.phase is Phase.VERIFY:
            if not pending:
                _follow(cycles, place, is_open)
            cycles.append(Cycle([*pending, place]))
            pending, is_open = [], True
        elif is_open:
            cycles[-1].parts.append(place)
    return cycles


def _follow(cycles: list[Cycle], place: int, is_open: bool) -> None:
    if cycles and is_open:
        cycles[-1].next_start = place
