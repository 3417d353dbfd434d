"""Two sides at the same mixture of batch sizes: a change of the load is no change of the engine (pure)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specscope_server.acceptance.statistics import Ratio
from specscope_server.timing.schemas import ComparedPhase
from specscope_server.timing.statistics import MIN_CYCLES, bucket_place, per_cycle_ms, relative_change, total
from specscope_server.timing.tracks import Cell, CellKey, Track

FEW = MIN_CYCLES / 4
"""Cycles that a cell needs on each side."""
MOST = 0.7
"""Cells without an interval are left out if those with one hold this share of the cycles."""
NO_CELLS = "no batch size was met by both sides often enough"


@dataclass(frozen=True, slots=True)
class SameBatch:
    """The comparison over cells that both sides met."""

    phases: list[ComparedPhase]
    note: str


def same_batch(one: Track, other: Track) -> SameBatch:
    """Compare verify and cycle cell by cell, each weighing as many cycles as the second side ran in it."""
    keys = [
        key
        for key in sorted(one.cells, key=lambda key: (bucket_place(key[0]), key[1]))
        if key in other.cells and min(_cycles(one, key), _cycles(other, key)) >= FEW
    ]
    if not keys:
        return SameBatch([], NO_CELLS)
    every = sum(total(cell.cycles) for cell in other.cells.values())
    sure = [key for key in keys if _has_interval(one, key) and _has_interval(other, key)]
    if sum(_cycles(other, key) for key in sure) >= MOST * every:
        keys = sure
    weights = [_cycles(other, key) for key in keys]
    covered = sum(weights) / every
    rows = [_row("cycle", "whole cycle", [(one.cells[key], other.cells[key]) for key in keys], weights)]
    if all(cell.verify is not None for key in keys for cell in (one.cells[key], other.cells[key])):
        pairs = [(one.cells[key], other.cells[key]) for key in keys]
        rows.append(_row("verify", "verify", pairs, weights))
    batches = ", ".join(dict.fromkeys(key[0] for key in keys))
    note = f"at batch sizes {batches}, which hold {100 * covered:.0f} % of the second side's cycles"
    return SameBatch(rows, note)


def _has_interval(track: Track, key: CellKey) -> bool:
    cell = track.cells[key]
    return per_cycle_ms(cell.seconds, cell.cycles).low is not None


def _cycles(track: Track, key: CellKey) -> float:
    return total(track.cells[key].cycles)


def _row(
    name: str, title: str, pairs: Sequence[tuple[Cell, Cell]], weights: Sequence[float]
) -> ComparedPhase:
    sides = [weighted_mean([_time(pair[side], name) for pair in pairs], weights) for side in (0, 1)]
    change = relative_change(*sides)
    a, b = sides
    return ComparedPhase(
        phase=name, title=title, a_ms=a.value, a_low=a.low, a_high=a.high, b_ms=b.value, b_low=b.low,
        b_high=b.high,
        difference_ms=None if a.value is None or b.value is None else b.value - a.value,
        change=change.value, low=change.low, high=change.high,
        is_certain=change.low is not None and change.high is not None and not change.low <= 0 <= change.high,
    )  # fmt: skip


def _time(cell: Cell, name: str) -> Ratio:
    seconds = cell.seconds if name == "cycle" or cell.verify is None else cell.verify
    return per_cycle_ms(seconds, cell.cycles)


def weighted_mean(ratios: Sequence[Ratio], weights: Sequence[float]) -> Ratio:
    """Return the weighted mean; half widths of independent parts add up as squares."""
    known = [
        (ratio, weight) for ratio, weight in zip(ratios, weights, strict=True) if ratio.value is not None
    ]
    whole = sum(weight for _, weight in known)
    if not whole:
        return Ratio(None)
    value = sum((ratio.value or 0.0) * weight for ratio, weight in known) / whole
    down = up = 0.0
    for ratio, weight in known:
        if ratio.low is None or ratio.high is None:
            return Ratio(value)
        down += (weight * (ratio.low - (ratio.value or 0.0)) / whole) ** 2
        up += (weight * (ratio.high - (ratio.value or 0.0)) / whole) ** 2
    return Ratio(value, value - math.sqrt(down), value + math.sqrt(up), known[0][0].method)
