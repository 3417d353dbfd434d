"""What one source of time says of a window, in one shape for all sources.

A track splits observed time into phases. ``cycle`` holds what belongs to decode cycles, ``beside`` what lies
between them; together they are the whole wall time of the schedulers that reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specscope_server.acceptance.statistics import Floats, Ratio, sum_over
from specscope_server.timing.phases import Phase
from specscope_server.timing.schemas import Level
from specscope_server.timing.statistics import per_cycle_ms, total

CellKey = tuple[str, str]
"""(batch bucket, D), as label values."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Cycles of one batch bucket and D; arrays of shape (buckets,). ``verify`` None: not told apart."""

    cycles: Floats
    seconds: Floats
    """Whole cycles, gaps before them included."""
    verify: Floats | None


@dataclass(frozen=True, slots=True)
class Track:
    """Arrays of shape (fine buckets,), in seconds added up over schedulers; NaN = not observed."""

    level: Level
    clock: str
    """``device`` (events), ``host`` (the scheduler's clock) or ``wall`` (from rates)."""
    is_plain: bool
    """The cycles are plain decode steps, without speculation."""
    cycles: Floats
    """Steps of a scheduler, each over all requests of its batch."""
    wall: Floats
    cycle: dict[Phase, Floats]
    beside: dict[Phase, Floats]
    cells: dict[CellKey, Cell] = field(default_factory=dict)
    plain_cells: dict[CellKey, Cell] = field(default_factory=dict)
    """Plain decode steps of a speculative launch (an adaptive engine that stopped drafting)."""
    overlap: str = ""
    """``on``, ``off`` or '' (not known)."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be believed; '' = it can. A track with a problem is shown among the checks only."""
    warm_up_cycles: float = 0.0
    newest_ms: int | None = None
    source: str = ""
    tokens: Floats | None = None
    """Tokens that the cycles emitted, where they follow from the same samples; None = take the counters."""
    tells_cycles: bool = True
    """T_c is without the prefills between cycles."""

    @property
    def size(self) -> int:
        """Number of fine buckets."""
        return len(self.cycles)

    @property
    def cycle_seconds(self) -> Floats:
        """Time of the cycles alone; T_c = Σ of it / Σ cycles."""
        return sum_over(list(self.cycle.values()), self.size)

    @property
    def active_seconds(self) -> Floats:
        """Time in which the engine was at work: cycles, prefill and what lies between."""
        rest = [value for phase, value in self.beside.items() if phase not in (Phase.IDLE, Phase.WARM_UP)]
        return sum_over([*self.cycle.values(), *rest], self.size)

    @property
    def cycle_ms(self) -> Ratio:
        """T_c with its interval."""
        return per_cycle_ms(self.cycle_seconds, self.cycles)

    @property
    def active_ms(self) -> Ratio:
        """Active time per cycle: T_c and the share of prefills that came between."""
        return per_cycle_ms(self.active_seconds, self.cycles)

    def phase_ms(self, phase: Phase) -> Ratio:
        """Return a phase's time per cycle."""
        if phase in self.cycle:
            return per_cycle_ms(self.cycle[phase], self.cycles)
        return per_cycle_ms(self.beside[phase], self.cycles) if phase in self.beside else Ratio(None)

    def seconds(self, phase: Phase) -> Floats | None:
        """Return all time of a phase, inside cycles and beside them."""
        parts = [group[phase] for group in (self.cycle, self.beside) if phase in group]
        return sum_over(parts, self.size) if parts else None

    @property
    def phases(self) -> list[Phase]:
        """Return the phases that this track tells, in order."""
        return [phase for phase in Phase if phase in self.cycle or phase in self.beside]

    @property
    def is_used(self) -> bool:
        """Tell whether it holds cycles that can be believed."""
        return not self.problem and total(self.cycles) > 0


def added(tracks: Sequence[Track]) -> Track:
    """Return tracks of one level (schedulers, or launches) as one; cells of the same key add up."""
    first, size = tracks[0], tracks[0].size

    def group(name: str) -> dict[Phase, Floats]:
        parts: dict[Phase, list[Floats]] = {}
        for track in tracks:
            for phase, value in getattr(track, name).items():
                parts.setdefault(phase, []).append(value)
        return {phase: sum_over(parts[phase], size) for phase in Phase if phase in parts}

    return replace(
        first,
        cycles=sum_over([track.cycles for track in tracks], size),
        wall=sum_over([track.wall for track in tracks], size),
        cycle=group("cycle"),
        beside=group("beside"),
        cells=_added_cells([track.cells for track in tracks], size),
        plain_cells=_added_cells([track.plain_cells for track in tracks], size),
        overlap=_common(track.overlap for track in tracks),
        clock=_common(track.clock for track in tracks),
        is_plain=all(track.is_plain for track in tracks),
        notes=tuple(dict.fromkeys(note for track in tracks for note in track.notes)),
        problem=next((track.problem for track in tracks if track.problem), ""),
        tokens=_added_tokens(tracks),
        tells_cycles=all(track.tells_cycles for track in tracks),
        warm_up_cycles=sum(track.warm_up_cycles for track in tracks),
        newest_ms=max((track.newest_ms for track in tracks if track.newest_ms), default=None),
    )


def _added_tokens(tracks: Sequence[Track]) -> Floats | None:
    known = [track.tokens for track in tracks if track.tokens is not None]
    return sum_over(known, tracks[0].size) if len(known) == len(tracks) else None


def _common(values: Iterable[str]) -> str:
    distinct = sorted(set(values) - {""})
    return " and ".join(distinct)


def _added_cells(groups: Sequence[dict[CellKey, Cell]], size: int) -> dict[CellKey, Cell]:
    parts: dict[CellKey, list[Cell]] = {}
    for cells in groups:
        for key, cell in cells.items():
            parts.setdefault(key, []).append(cell)
    return {key: _added_cell(found, size) for key, found in parts.items()}


def _added_cell(cells: Sequence[Cell], size: int) -> Cell:
    verify = [cell.verify for cell in cells if cell.verify is not None]
    return Cell(
        sum_over([cell.cycles for cell in cells], size),
        sum_over([cell.seconds for cell in cells], size),
        sum_over(verify, size) if len(verify) == len(cells) else None,
    )


def masked(values: Floats, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """Return the values where ``keep`` holds, NaN elsewhere."""
    return np.where(keep, values, np.nan)
