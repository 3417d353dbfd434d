"""T_ar, the plain decode step: from the same launch where it stepped without drafts, else from a launch of
the same model without speculation. Never assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import Ratio
from specscope_server.kit.web.state import AppState
from specscope_server.models import Launch
from specscope_server.timing.measure import LEVELS, LaunchTracks, Timed, measure
from specscope_server.timing.same_batch import weighted_mean
from specscope_server.timing.schemas import Level
from specscope_server.timing.statistics import MIN_CYCLES, bucket_place, per_cycle_ms, total
from specscope_server.timing.tracks import Cell, Track

MAX_TRIED = 3
LOOK_BACK_MS = 24 * 3_600_000
"""Of a long plain launch, its last day."""
COVERED = 0.5
"""Share of the cycles whose batch size the baseline must have met."""
SHOWN_KEYS = 4


@dataclass(frozen=True, slots=True)
class PlainSteps:
    """Plain decode steps of one launch, by batch bucket."""

    launch: Launch
    level: Level
    cells: Mapping[str, Cell]
    is_own: bool
    """Of the launch itself: it decoded without drafts at times."""
    note: str

    def step_ms(self, batch: str) -> Ratio:
        """Return T_ar in one batch bucket."""
        cell = self.cells.get(batch)
        return per_cycle_ms(cell.seconds, cell.cycles) if cell else Ratio(None)

    @property
    def cycles(self) -> float:
        """Return how many steps there are."""
        return sum(total(cell.cycles) for cell in self.cells.values())


@dataclass(frozen=True, slots=True)
class BreakEven:
    """T_c and T_ar over the batch sizes that both met, weighted by cycles."""

    cycle: Ratio
    plain: Ratio
    covered: float
    """Share of the cycles that is compared."""


def find_baseline(session: Session, state: AppState, timed: Timed, now_ms: int) -> PlainSteps | None:
    """Return the plain steps nearest in time that suit the newest launch of a window; None without any."""
    if not timed.launches:
        return None
    newest = timed.launches[-1]
    own = _own(newest)
    if own is not None:
        return own
    for launch in _candidates(session, newest.launch)[:MAX_TRIED]:
        start = max(launch.first_seen_ms, launch.last_seen_ms - LOOK_BACK_MS)
        if start >= launch.last_seen_ms:
            continue
        other = measure(
            session, state, launch.server_id, [launch], start, launch.last_seen_ms + 1, now_ms,
        )  # fmt: skip
        found = _plain(other, newest.launch, timed.level)
        if found is not None and found.cycles >= MIN_CYCLES:
            return found
    return None


def _own(newest: LaunchTracks) -> PlainSteps | None:
    track = newest.tracks.get(Level.PROBE)
    if track is None or not track.plain_cells:
        return None
    found = PlainSteps(
        newest.launch, Level.PROBE, _by_batch(track.plain_cells.items()), True,
        "plain steps of this launch itself",
    )  # fmt: skip
    return found if found.cycles >= MIN_CYCLES else None


def _candidates(session: Session, launch: Launch) -> list[Launch]:
    """Return launches of the same server and model without speculation, nearest in time first."""
    query = select(Launch).where(
        Launch.server_id == launch.server_id,
        Launch.id != launch.id,
        Launch.algorithm.is_(None),
        Launch.version_source == "server_info",
    )
    same = ("engine", "model", "quantization", "dtype", "tp_size", "dp_size", "pp_size")
    found = [
        other
        for other in session.scalars(query)
        if all(getattr(other, name) == getattr(launch, name) for name in same)
    ]
    return sorted(found, key=lambda other: abs(other.first_seen_ms - launch.first_seen_ms))


def _plain(timed: Timed, launch: Launch, wanted: Level) -> PlainSteps | None:
    """Return the steps on the level wanted, else on the best there is (which the note says)."""
    if not timed.launches:
        return None
    one = timed.launches[-1]
    usable = [level for level in LEVELS if level in one.tracks and one.tracks[level].is_used]
    level = wanted if wanted in usable else (usable[0] if usable else Level.NONE)
    if level is Level.NONE:
        return None
    track = one.tracks[level]
    notes = [f"launch {one.launch.id} without speculation"]
    if level is not wanted:
        notes.append(f"measured by other means ({level.replace('_', ' ')})")
    changed = _changed(one.launch, launch)
    if changed:
        notes.append(f"its environment differs: {changed}")
    return PlainSteps(one.launch, level, _by_batch(track.cells.items()), False, "; ".join(notes))


def _by_batch(cells: Any) -> dict[str, Cell]:
    return {batch: cell for (batch, _), cell in cells if total(cell.cycles) > 0}


def _changed(one: Launch, other: Launch) -> str:
    """Name variables that differ between two launches; names and values are untrusted."""
    a, b = (orjson.loads(launch.environment or "{}") for launch in (one, other))
    names = sorted(name for name in {*a, *b} if a.get(name) != b.get(name))
    more = f" and {len(names) - SHOWN_KEYS} more" if len(names) > SHOWN_KEYS else ""
    return ", ".join(name[:40] for name in names[:SHOWN_KEYS]) + more


def break_even(track: Track, plain: PlainSteps) -> BreakEven | None:
    """Return T_c and T_ar on the batch sizes that both sides met; None when those are too few."""
    batches: dict[str, list[Cell]] = {}
    for (batch, _), cell in track.cells.items():
        batches.setdefault(batch, []).append(cell)
    weights, cycles, plains = [], [], []
    every = sum(total(cell.cycles) for cells in batches.values() for cell in cells)
    for batch, cells in sorted(batches.items(), key=lambda item: bucket_place(item[0])):
        step = plain.step_ms(batch)
        if step.value is None or total(plain.cells[batch].cycles) < MIN_CYCLES / 4:
            continue
        weights.append(sum(total(cell.cycles) for cell in cells))
        cycles.append(weighted_mean([per_cycle_ms(cell.seconds, cell.cycles) for cell in cells],
                            [total(cell.cycles) for cell in cells]))  # fmt: skip
        plains.append(step)
    if not every or sum(weights) / every < COVERED:
        return None
    return BreakEven(weighted_mean(cycles, weights), weighted_mean(plains, weights), sum(weights) / every)
