"""Reduce the files of one capture to a `TraceSummary`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from specscope_collectors.observations import Labels, TraceCollectives, TraceKernel, TraceRank, TraceSummary
from specscope_collectors.traces.accounts import (
    PRIORITY,
    Work,
    count_cycles,
    cpu_times,
    phases_of,
    times_of,
    work_of,
)
from specscope_collectors.traces.bounds import TraceError
from specscope_collectors.traces.collectives import RankWork, compare, groups_of, name_of
from specscope_collectors.traces.columns import Columns
from specscope_collectors.traces.intervals import Ints, union_lengths
from specscope_collectors.traces.joining import NOWHERE, by_gpu_range, by_launch
from specscope_collectors.traces.kernels import KernelClass
from specscope_collectors.traces.notes import notes_of
from specscope_collectors.traces.reading import ReadFile
from specscope_collectors.traces.spans import Found, Occurrence, occurrences_of
from specscope_collectors.traces.structure import by_structure

TOP, MAX_KERNEL_NAME = 20, 200
MAX_RANKS = 1_024


@dataclass(frozen=True, slots=True)
class _Rank:
    record: TraceRank
    compared: RankWork


def summarise(
    files: Iterable[ReadFile], name: str, now_ms: int, note: str = "", time_ms: int | None = None
) -> TraceSummary:
    """Return the summary of the files of one capture. Raises `TraceError` when two are of the same rank.

    ``time_ms``: when it began, where the files do not say (the time of the file); last, ``now_ms``.
    """
    known, parts, times = [], [], []
    for each in files:  # one after the other, so that only numbers of all but one are held
        known.append(each.file)
        times.append(each.time_ms)
        parts += [_rank(labels, columns) for labels, columns in each.ranks]
    _check(parts)
    offsets: dict[int, float] = {}
    collectives: list[TraceCollectives] = []
    compared = [part.compared for part in parts]
    for group in groups_of(compared):
        found = compare(compared, group)
        collectives += found.collectives
        offsets |= found.offsets_ms
    ranks = tuple(
        msgspec.structs.replace(part.record, clock_offset_ms=offsets.get(index))
        for index, part in enumerate(parts)
    )
    said = [time for time in times if time is not None]
    digests = "".join(sorted(file.sha256 for file in known))
    return TraceSummary(
        key=hashlib.sha256(digests.encode()).hexdigest()[:40],
        time_ms=min(said) if said else time_ms or now_ms,
        name=name,
        note=note,
        files=tuple(known),
        ranks=ranks,
        collectives=tuple(collectives),
        notes=tuple(notes_of(ranks, known, has_time=bool(said))),
    )


def _check(parts: Sequence[_Rank]) -> None:
    if not parts:
        raise TraceError("no file was named; name the files of one capture")
    if len(parts) > MAX_RANKS:
        raise TraceError(f"these are {len(parts)} ranks; at most {MAX_RANKS} are compared")
    counts = Counter(name_of(part.record.labels) for part in parts)
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise TraceError(
            f"{counts[twice]} files are of {twice}: name the files of one capture only, one for each rank "
            "(and either the merged file or those it was merged from)"
        )


def _rank(labels: Labels, columns: Columns) -> _Rank:
    basis, found, of, confidence = _phases(columns)
    work = work_of(columns, of)
    has_gpu = len(columns.kernels) > 0
    count = len(found.occurrences)
    times = times_of(work, count) if has_gpu else cpu_times(found.occurrences)
    nowhere = of == NOWHERE
    top, other = _kernels(columns, work)
    record = TraceRank(
        labels=labels,
        basis=basis,
        confidence=confidence,
        cycles=count_cycles(found.occurrences),
        ranges=found.ranges,
        phases=phases_of(found.occurrences, times, on_cpu=not has_gpu),
        span_ms=max(0.0, columns.last_us - columns.first_us) / 1000 if columns.kept else 0.0,
        gpu_busy_ms=float(union_lengths(work.start, work.end, np.zeros(len(of), np.int64), 1)[0]) / 1000,
        unattributed_ms=float((work.end - work.start)[nowhere].sum()) / 1000,
        kernels=len(of),
        top=top,
        other=other,
        refused=dict(columns.refused),
    )
    return _Rank(record, RankWork(labels, found.occurrences, work))


def _phases(columns: Columns) -> tuple[str, Found, Ints, float]:
    """Return (basis, occurrences, occurrence of each kernel, confidence), the best evidence there is."""
    named = occurrences_of(columns, columns.ranges)
    nothing = np.full(len(columns.kernels), NOWHERE, dtype=np.int64)
    if not len(columns.kernels):
        return ("cpu_ranges" if named.occurrences else "none"), named, nothing, 1.0
    joined = by_launch(columns, named.occurrences) if named.occurrences else nothing
    if (joined != NOWHERE).any():
        return "launches", named, joined, 1.0
    mirrored = occurrences_of(columns, columns.gpu_ranges)
    joined = by_gpu_range(columns, mirrored.occurrences) if mirrored.occurrences else nothing
    if (joined != NOWHERE).any():
        return "gpu_ranges", mirrored, joined, 1.0
    guess = by_structure(columns)
    if guess is not None:
        return "structure", Found(guess.occurrences), guess.of_kernel, guess.confidence
    empty: list[Occurrence] = []
    return "none", Found(empty, named.ranges), nothing, 0.0


def _kernels(columns: Columns, work: Work) -> tuple[tuple[TraceKernel, ...], tuple[TraceKernel, ...]]:
    """Return the longest kernels in sum, and the longest of those that nobody knows."""
    names, inverse, counts = np.unique(columns.kernels["name"], return_inverse=True, return_counts=True)
    totals = np.bincount(inverse, weights=columns.kernels["dur"], minlength=len(names))
    classes = np.zeros(len(names), dtype=np.int64)
    classes[inverse] = work.classes
    order = np.argsort(-totals, kind="stable")
    unknown = [row for row in order if PRIORITY[classes[row]] is KernelClass.OTHER]

    def named(row: int) -> TraceKernel:
        return TraceKernel(
            name=columns.names.texts[names[row]][:MAX_KERNEL_NAME],
            kernel_class=PRIORITY[classes[row]].value,
            count=int(counts[row]),
            total_ms=float(totals[row]) / 1000,
        )

    return tuple(map(named, order[:TOP])), tuple(map(named, unknown[:TOP]))
