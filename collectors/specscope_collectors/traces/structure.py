"""Phases of a trace without any named range, from the order in which CUDA graphs are launched.

A cycle replays a small graph (all draft steps), a large one (the target verifies) and, with some attention
backends, another small one (draft-extend). Large and small are told apart by the GPU time of one replay.
What is launched between verify and the next draft is sampling and draft-extend, which cannot be told apart
when the latter is no graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specscope_collectors.traces.columns import Columns
from specscope_collectors.traces.intervals import Bools, Floats, Ints
from specscope_collectors.traces.joining import by_launch
from specscope_collectors.traces.spans import Occurrence, Phase

MIN_CYCLES = 3
CONTRAST = 1.5
"""The target must take this many times as long as the draft's graphs to be told from them."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Phases by structure: occurrence of each kernel, and the share of cycles that have the usual form."""

    occurrences: list[Occurrence]
    of_kernel: Ints
    confidence: float


def by_structure(columns: Columns) -> Guess | None:
    """Return a guess; None where the launches have no such form."""
    launches, busy = _graph_launches(columns)
    if len(launches) < 2 * MIN_CYCLES:
        return None
    is_large = _large(busy)
    if is_large is None or is_large.sum() < MIN_CYCLES:
        return None
    gaps = np.diff(np.flatnonzero(is_large)) - 1
    usual = int(np.bincount(gaps).argmax())
    confidence = float(np.mean(gaps == usual))
    if usual not in (1, 2) or confidence < 0.5:
        return None
    return _guess(columns, launches, is_large, confidence)


def _graph_launches(columns: Columns) -> tuple[Ints, Floats]:
    """Return rows of graph launches in time, and the GPU time (µs) of the kernels of each."""
    table = columns.launches
    rows = np.flatnonzero(table["graph"])
    rows = rows[np.argsort(table["ts"][rows], kind="stable")]
    if not len(rows) or not len(columns.kernels):
        return rows[:0], np.zeros(0)
    correlations, inverse = np.unique(columns.kernels["correlation"], return_inverse=True)
    sums = np.bincount(inverse, weights=columns.kernels["dur"])
    wanted = table["correlation"][rows]
    at = np.minimum(np.searchsorted(correlations, wanted), len(correlations) - 1)
    busy = np.where(correlations[at] == wanted, sums[at], 0.0)
    return rows[busy > 0], busy[busy > 0]


def _large(busy: Floats) -> Bools | None:
    """Split replays at the widest gap of ln(time); None where there is no clear one."""
    logs = np.log(np.sort(busy))
    gaps = np.diff(logs)
    # Neither side may be a handful of odd ones.
    few = max(1, len(logs) // 6)
    gaps[: few - 1] = 0
    gaps[len(gaps) - few + 1 :] = 0
    widest = int(gaps.argmax())
    if gaps[widest] < np.log(CONTRAST):
        return None
    is_large: Bools = np.log(busy) > (logs[widest] + logs[widest + 1]) / 2
    return is_large


def _guess(columns: Columns, launches: Ints, is_large: Bools, confidence: float) -> Guess:
    table = columns.launches
    starts, thread = table["ts"][launches], table["thread"][launches]
    phases: list[tuple[Phase, float, int]] = []
    for place in range(len(launches)):
        if is_large[place]:
            end = starts[place] + table["dur"][launches[place]]
            phases.append((Phase.VERIFY, starts[place], thread[place]))
            phases.append((Phase.AFTER_VERIFY, end, thread[place]))
        elif place + 1 < len(launches) and is_large[place + 1]:
            phases.append((Phase.DRAFT, starts[place], thread[place]))
        elif place and is_large[place - 1]:
            phases[-1] = (Phase.SAMPLING, phases[-1][1], phases[-1][2])
            phases.append((Phase.DRAFT_EXTEND, starts[place], thread[place]))
    ends = [begun for _, begun, _ in phases[1:]] + [float(columns.last_us)]
    occurrences = [
        Occurrence(phase, float(begun), float(end), int(of))
        for (phase, begun, of), end in zip(phases, ends, strict=True)
    ]
    return Guess(occurrences, by_launch(columns, occurrences), confidence)
