"""Where the time of each occurrence of a phase went, so that the parts add up to the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specscope_collectors.observations import TracePhase
from specscope_collectors.traces.columns import Columns
from specscope_collectors.traces.intervals import Bools, Floats, Ints, extents, union_lengths
from specscope_collectors.traces.kernels import KernelClass, kernel_class
from specscope_collectors.traces.spans import OF_CYCLE, Occurrence, Phase, cycles_of

CYCLE, UNATTRIBUTED = "cycle", "unattributed"
MAX_KEPT = 2_000
"""Occurrences of a phase whose times are kept; of more, evenly spread ones."""
PRIORITY = (
    KernelClass.GEMM, KernelClass.ATTENTION, KernelClass.NORM, KernelClass.SAMPLING, KernelClass.OTHER,
    KernelClass.FUSED_ALL_REDUCE, KernelClass.ALL_REDUCE, KernelClass.COLLECTIVE, KernelClass.COPY,
)  # fmt: skip
"""Whose an instant is in which several classes run: computing hides communication, not the reverse."""


@dataclass(frozen=True, slots=True)
class Work:
    """What ran on the GPU, and for which occurrence (`joining.NOWHERE` = none)."""

    start: Floats
    """µs."""
    end: Floats
    classes: Ints
    """Index into `PRIORITY`."""
    of: Ints


def work_of(columns: Columns, of: Ints) -> Work:
    """Return the kernels of a rank with their classes."""
    names = columns.names.texts
    by_name = np.array([PRIORITY.index(kernel_class(name)) for name in names] or [0], dtype=np.int64)
    start = columns.kernels["ts"]
    return Work(start, start + columns.kernels["dur"], by_name[columns.kernels["name"]], of)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of each occurrence, shape (occurrences,); NaN where nothing ran on the GPU."""

    first: Floats
    """µs, on the clock of the trace."""
    last: Floats
    wall: Floats
    gap: Floats
    exclusive: dict[KernelClass, Floats]
    busy: dict[KernelClass, Floats]


def times_of(work: Work, count: int) -> Times:
    """Return the times of ``count`` occurrences from what ran for each."""
    inside = work.of >= 0
    start, end = work.start[inside], work.end[inside]
    of, classes = work.of[inside], work.classes[inside]
    first, last = extents(start, end, of, count)
    exclusive, busy = {}, {}
    covered = np.zeros(count)
    for index, kind in enumerate(PRIORITY):
        own = classes == index
        if not own.any():
            continue
        so_far = classes <= index
        together = union_lengths(start[so_far], end[so_far], of[so_far], count)
        exclusive[kind] = (together - covered) / 1000
        busy[kind] = np.bincount(of[own], weights=(end - start)[own], minlength=count) / 1000
        covered = together
    wall = np.where(np.isfinite(first), last - first, np.nan) / 1000
    return Times(first, last, wall, wall - covered / 1000, exclusive, busy)


def cpu_times(occurrences: Sequence[Occurrence]) -> Times:
    """Return the times of ranges on the CPU, of which nothing is known inside."""
    first = np.array([each.start for each in occurrences])
    last = np.array([each.end for each in occurrences])
    return Times(first, last, (last - first) / 1000, np.zeros(len(occurrences)), {}, {})


def phases_of(occurrences: list[Occurrence], times: Times, *, on_cpu: bool) -> tuple[TracePhase, ...]:
    """Return the phases that occur, then the cycles and what of them no phase covers."""
    found = []
    for phase in Phase:
        ours = np.array([each.phase is phase for each in occurrences], dtype=bool) & np.isfinite(times.wall)
        if ours.any():
            found.append(_phase(phase, ours, occurrences, times, on_cpu=on_cpu))
    return (*found, *_cycles(occurrences, times))


def _phase(
    phase: Phase, ours: Bools, occurrences: list[Occurrence], times: Times, *, on_cpu: bool
) -> TracePhase:
    rows = np.flatnonzero(ours)
    kept = _spread(rows)
    sizes = Counter(occurrences[row].batch_size for row in rows)
    sizes.pop(0, None)
    cpu = np.array([occurrences[row].end - occurrences[row].start for row in kept]) / 1000
    return TracePhase(
        phase=phase.value,
        count=len(rows),
        wall_ms=packed(times.wall[kept]),
        cpu_ms=packed(cpu),
        class_ms=_by_class(times.exclusive, rows, kept),
        busy_ms=_by_class(times.busy, rows, kept),
        gap_ms=b"" if on_cpu else packed(times.gap[kept]),
        batch_sizes=dict(sorted(sizes.items())),
    )


def _by_class(values: dict[KernelClass, Floats], rows: Ints, kept: Ints) -> dict[str, bytes]:
    return {kind.value: packed(each[kept]) for kind, each in values.items() if each[rows].any()}


def _cycles(occurrences: list[Occurrence], times: Times) -> tuple[TracePhase, ...]:
    """Return whole cycles: from the beginning of one to that of the next, and the uncovered rest."""
    order = [row for row in range(len(occurrences)) if np.isfinite(times.wall[row])]
    cycles = cycles_of([occurrences[row] for row in order])
    walls, rests = [], []
    for cycle in cycles:
        if cycle.next_start is None:
            continue
        rows = [order[place] for place in cycle.parts]
        begin, end = times.first[rows].min(), times.first[order[cycle.next_start]]
        first, last = (np.minimum(each[rows], end) for each in (times.first, times.last))
        covered = union_lengths(first, last, np.zeros(len(rows), np.int64), 1)[0]
        if end > begin:
            walls.append((end - begin) / 1000)
            rests.append((end - begin - covered) / 1000)
    if not walls:
        return ()
    kept = _spread(np.arange(len(walls)))
    return tuple(
        TracePhase(phase=name, count=len(walls), wall_ms=packed(np.array(values)[kept]))
        for name, values in ((CYCLE, walls), (UNATTRIBUTED, rests))
    )


def count_cycles(occurrences: list[Occurrence]) -> int:
    """Return how many verifications there are."""
    return sum(each.phase is Phase.VERIFY for each in occurrences)


def packed(values: Floats) -> bytes:
    """Return values as they travel: little-endian float32."""
    return values.astype("<f4").tobytes()


def unpacked(data: bytes) -> Floats:
    """Return what `packed` was given."""
    return np.frombuffer(data, dtype="<f4").astype(np.float64)


def _spread(rows: Ints) -> Ints:
    if len(rows) <= MAX_KEPT:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MAX_KEPT).astype(np.int64)]


__all__ = ["CYCLE", "OF_CYCLE", "UNATTRIBUTED", "Work", "phases_of", "times_of", "work_of"]
