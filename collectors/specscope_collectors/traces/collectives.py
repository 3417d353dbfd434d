"""Collectives over ranks: what the transfer needs, and who waits for whom.

A collective ends on all ranks at about the same time, and its duration on a rank includes waiting for the
last one to arrive. So the shortest duration over ranks is the transfer, and what each rank took longer is
waiting (or a delay of its own after the transfer). Clocks of ranks are not compared, only durations; the
offset of clocks is told from the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specscope_collectors.observations import Labels, TraceCollectives
from specscope_collectors.traces.accounts import PRIORITY, Work
from specscope_collectors.traces.intervals import Floats, Ints
from specscope_collectors.traces.kernels import COMMUNICATION, KernelClass
from specscope_collectors.traces.spans import Occurrence, Phase

SHARED = (*COMMUNICATION, KernelClass.FUSED_ALL_REDUCE)
LATE_US, LATE_SHARE = 1.0, 0.05
"""Nobody was late to a collective that took all ranks about the same time."""
MAX_SHIFT = 3
"""Occurrences by which one rank's capture may begin before another's."""


@dataclass(frozen=True, slots=True)
class RankWork:
    """What is compared of one rank."""

    labels: Labels
    occurrences: Sequence[Occurrence]
    work: Work


@dataclass(frozen=True, slots=True)
class Calls:
    """Collectives of one phase on one rank, by occurrence and in their order."""

    of: Ints
    kind: Ints
    duration: Floats
    end: Floats
    starts: Floats
    """First kernel of each occurrence, µs, shape (occurrences of the phase,)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Collectives and clocks of one group of ranks."""

    collectives: tuple[TraceCollectives, ...]
    offsets_ms: dict[int, float]
    """Index of a rank → its clock minus that of the group's first."""


def name_of(labels: Labels) -> str:
    """Return a short name of a rank, such as ``TP3`` or ``DP1 TP3``."""
    names = {"dp_rank": "DP", "pp_rank": "PP", "tp_rank": "TP", "moe_ep_rank": "EP", "rank": "rank "}
    parts = [f"{short}{labels[name]}" for name, short in names.items() if name in labels]
    return " ".join(parts) or "only rank"


def groups_of(ranks: Sequence[RankWork]) -> list[list[int]]:
    """Return indexes of ranks that share all labels but the tensor-parallel one."""
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for index, rank in enumerate(ranks):
        if "tp_rank" in rank.labels:
            groups.setdefault(tuple(sorted(_shared(rank.labels).items())), []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def _shared(labels: Labels) -> Labels:
    """Expert-parallel ranks follow from the tensor-parallel one."""
    return {name: value for name, value in labels.items() if name not in ("tp_rank", "moe_ep_rank", "rank")}


def compare(ranks: Sequence[RankWork], group: Sequence[int]) -> Compared:
    """Compare the collectives of the ranks of a group, phase by phase."""
    found, ends = [], []
    names = [name_of(ranks[index].labels) for index in group]
    for phase in Phase:
        calls = [_calls(ranks[index], phase) for index in group]
        if not all(len(each.starts) for each in calls) or not any(len(each.of) for each in calls):
            continue
        durations, end, missed = aligned(calls)
        ends.append(end)
        found.append(_summed(phase, _shared(ranks[group[0]].labels), names, durations, missed))
    together = np.concatenate(ends, axis=1) if ends else np.zeros((len(group), 0))
    offsets = {
        index: float(np.median(together[row] - together[0])) / 1000
        for row, index in enumerate(group)
        if together.shape[1]
    }
    return Compared(tuple(found), offsets)


def _summed(
    phase: Phase, shared: Labels, names: Sequence[str], durations: Floats, missed: int
) -> TraceCollectives:
    """``durations``: shape (ranks, collectives), µs."""
    count = durations.shape[1]
    transfer = durations.min(axis=0)
    waiting = (durations - transfer).sum(axis=1) / 1000
    is_late = durations.max(axis=0) - transfer > np.maximum(LATE_US, LATE_SHARE * transfer)
    last = np.bincount(durations[:, is_late].argmin(axis=0), minlength=len(names))
    return TraceCollectives(
        phase=phase.value,
        group=shared,
        aligned=count,
        not_aligned=missed,
        transfer_ms=float(transfer.sum()) / 1000,
        waiting_ms={name: float(value) for name, value in zip(names, waiting, strict=True)},
        last={name: int(value) for name, value in zip(names, last, strict=True)},
    )


def _calls(rank: RankWork, phase: Phase) -> Calls:
    places = np.array([n for n, each in enumerate(rank.occurrences) if each.phase is phase], dtype=np.int64)
    number = np.full(len(rank.occurrences) + 1, -1, dtype=np.int64)
    number[places] = np.arange(len(places))
    own = number[rank.work.of]
    starts = np.full(len(places), np.inf)
    np.minimum.at(starts, own[own >= 0], rank.work.start[own >= 0])
    wanted = [PRIORITY.index(kind) for kind in SHARED]
    rows = np.flatnonzero((own >= 0) & np.isin(rank.work.classes, wanted))
    rows = rows[np.lexsort((rank.work.start[rows], own[rows]))]
    work = rank.work
    return Calls(own[rows], work.classes[rows], (work.end - work.start)[rows], work.end[rows], starts)


def aligned(calls: Sequence[Calls]) -> tuple[Floats, Floats, int]:
    """Return durations and ends (ranks, collectives) of those found on all ranks, and how many were not.

    The n-th collective of an occurrence is the same on all ranks when each rank has as many of the same
    classes in it.
    """
    shifts = [_shift(calls[0].starts, each.starts) for each in calls]
    by_rank = [_by_occurrence(each, shift) for each, shift in zip(calls, shifts, strict=True)]
    common = set(by_rank[0]).intersection(*by_rank[1:])
    columns: list[list[Ints]] = [[] for _ in calls]
    matched = 0
    for occurrence in sorted(common):
        rows = [one[occurrence] for one in by_rank]
        kinds = [tuple(each.kind[row]) for each, row in zip(calls, rows, strict=True)]
        if len(set(kinds)) == 1:
            matched += len(kinds[0])
            for column, row in zip(columns, rows, strict=True):
                column.append(row)
    picked = [np.concatenate(column) if column else np.zeros(0, np.int64) for column in columns]
    durations = np.stack([each.duration[row] for each, row in zip(calls, picked, strict=True)])
    ends = np.stack([each.end[row] for each, row in zip(calls, picked, strict=True)])
    return durations, ends, max(len(each.of) for each in calls) - matched


def _by_occurrence(calls: Calls, shift: int) -> dict[int, Ints]:
    if not len(calls.of):
        return {}
    numbers, first = np.unique(calls.of, return_index=True)
    rows = np.split(np.arange(len(calls.of)), first[1:])
    return {int(number) - shift: row for number, row in zip(numbers, rows, strict=True)}


def _shift(reference: Floats, starts: Floats) -> int:
    """Return how many occurrences ``starts`` begins before ``reference``, by the pattern of their times.

    A constant offset of the clocks does not matter: what is made small is the spread of the differences.
    """
    best, shift_of_best = np.inf, 0
    for shift in sorted(range(-MAX_SHIFT, MAX_SHIFT + 1), key=abs):
        ours, theirs = reference[max(0, -shift) :], starts[max(0, shift) :]
        count = min(len(ours), len(theirs))
        if count < max(1, min(len(reference), len(starts)) - MAX_SHIFT):
            continue
        difference = theirs[:count] - ours[:count]
        difference = difference[np.isfinite(difference)]
        spread = float(np.abs(difference - np.median(difference)).mean()) if len(difference) > 1 else 0.0
        if spread < 0.98 * best and (len(difference) > 1 or shift == 0):
            best, shift_of_best = spread, shift
    return shift_of_best
