"""Time as SGLang's device timer counts it: seconds on the device by category of forward pass.

Facts (SGLang's source): 0.5.8 wraps a whole round, so draft, verify and draft-extend are one category; from
0.5.15 on the runners are timed one by one. Graph runners of the draft have categories of their own; eager
drafts count as ``decode`` and their extend as ``extend``, like prefill. Categories do not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from specscope_server.acceptance.statistics import Flags, Floats, sum_over
from specscope_server.timing.phases import Phase
from specscope_server.timing.schemas import Level
from specscope_server.timing.series import Scheduler
from specscope_server.timing.statistics import batch_bucket, total
from specscope_server.timing.tracks import Cell, CellKey, Track, masked

TOLERANCE, LAST_PASS_SECONDS = 0.02, 0.5
"""A pass is counted when it ends: one that began before the window may put that much more into it."""
DECODE_MODES = ("decode_cuda_graph", "decode_none")
BUSY_STAGES = ("idle", "run_batch")
"""Stages that are not the host's own work: nothing to do, and launching or waiting for the device."""
EAGER = (
    "the draft runs without CUDA graphs: its draft-extend cannot be told from prefill, so both stand together"
)
OVERLAPPED = "the scheduler overlaps: host work that the device hides is not in the way and not shown"
NO_PARTS = "this engine version times a whole round; draft, verify and draft-extend are not told apart"
ESTIMATED = "steps are estimated from rates: this engine does not count them"
FORMER = "gpu_execution_seconds_total"
CURRENT = "forward_execution_seconds_total"


def device_track(
    scheduler: Scheduler,
    *,
    is_plain: bool,
    estimated_cycles: Floats,
    idle: Flags,
    batch: Floats,
    width: str,
) -> Track | None:
    """Return what the device timer counted; None where it is off.

    ``estimated_cycles`` stand in where steps are not counted; ``idle``: buckets without work, where the
    engine does not count idle time; ``batch``: requests decoded together; ``width``: D as a label.
    """
    categories = {name: scheduler.sum("time.forward", category=name) for name in _categories(scheduler)}
    if not any(total(value) > 0 for value in categories.values()):
        return None
    wall = scheduler.span("time.forward", "engine.graph_passes", "time.scheduler_idle")
    cycle, beside, notes = _split(categories, is_plain, scheduler.size)
    beside[Phase.IDLE] = _idle(scheduler, wall, idle)
    cycle[Phase.HOST] = _host(scheduler)
    known = sum(total(value) for group in (cycle, beside) for value in group.values())
    rest = wall - np.nan_to_num(sum_over([*cycle.values(), *beside.values()], scheduler.size))
    cycles = _steps(scheduler)
    if not total(cycles) > 0:
        cycles, notes = estimated_cycles, [*notes, ESTIMATED]
    cycle[Phase.UNATTRIBUTED] = rest if total(rest) > 0 else 0.0 * wall
    cycle = {phase: cycle[phase] for phase in Phase if phase in cycle}
    track = Track(
        level=Level.DEVICE_TIMER, clock="device", is_plain=is_plain, cycles=cycles, wall=wall, cycle=cycle,
        beside=beside, notes=tuple(notes), problem=_excess(known, total(wall)),
        newest_ms=scheduler.newest_ms, source=f"sglang:{FORMER if Phase.ROUND in cycle else CURRENT}",
    )  # fmt: skip
    track.cells.update(cells_by_batch(track, batch, width))
    return track


def _categories(scheduler: Scheduler) -> list[str]:
    return scheduler.values_of("time.forward", "category")


def _split(
    categories: Mapping[str, Floats], is_plain: bool, size: int
) -> tuple[dict[Phase, Floats], dict[Phase, Floats], list[str]]:
    """Return (phases of cycles, phases beside them, notes)."""
    cycle: dict[Phase, list[Floats]] = {}
    beside: dict[Phase, list[Floats]] = {}
    has_graphs = "eagle_draft_extend" in categories
    for name, value in categories.items():
        phase, is_inside = _phase_of(name, is_plain=is_plain, has_graphs=has_graphs)
        (cycle if is_inside else beside).setdefault(phase, []).append(value)
    notes = []
    if Phase.PREFILL_OR_EXTEND in beside:
        notes.append(EAGER)
    if Phase.ROUND in cycle:
        notes.append(NO_PARTS)
    return _summed(cycle, size), _summed(beside, size), notes


def _summed(parts: Mapping[Phase, list[Floats]], size: int) -> dict[Phase, Floats]:
    return {phase: sum_over(values, size) for phase, values in parts.items()}


def _phase_of(category: str, *, is_plain: bool, has_graphs: bool) -> tuple[Phase, bool]:
    """Return (phase, whether it belongs to a decode cycle) of a category."""
    if category in ("target_verify", "forward_target_verify"):
        return Phase.VERIFY, True
    if category in ("eagle_draft", "frozen_kv_draft"):
        return Phase.DRAFT, True
    if category == "eagle_draft_extend":
        return Phase.DRAFT_EXTEND, True
    if category == "forward_decode":
        return (Phase.DECODE if is_plain else Phase.ROUND), True
    if category == "decode":
        return (Phase.DECODE if is_plain or has_graphs else Phase.DRAFT), True
    if "extend" in category or "prefill" in category or category == "forward_mixed":
        is_one = is_plain or has_graphs or category.startswith("forward_")
        return (Phase.PREFILL if is_one else Phase.PREFILL_OR_EXTEND), False
    return Phase.UNATTRIBUTED, False


def _steps(scheduler: Scheduler) -> Floats:
    passes = [scheduler.sum("engine.graph_passes", mode=mode) for mode in DECODE_MODES]
    return sum_over(passes, scheduler.size)


def _idle(scheduler: Scheduler, wall: Floats, idle: Flags) -> Floats:
    counted = scheduler.sum("time.scheduler_idle")
    if np.isnan(counted).all():
        counted = scheduler.sum("time.scheduler_stage", category="idle")
    return np.where(idle, wall, 0.0 * wall) if np.isnan(counted).all() else counted


def _host(scheduler: Scheduler) -> Floats:
    """Return scheduler work while the device ran nothing: stages that the engine calls not overlapped."""
    found = [
        each.value
        for each in scheduler.find("time.scheduler_stage", forward_overlap="none")
        if each.labels.get("category") not in BUSY_STAGES
    ]
    return sum_over(found, scheduler.size)


def _excess(known: float, wall: float) -> str:
    if known > wall * (1 + TOLERANCE) + LAST_PASS_SECONDS:
        return f"device, host and idle time add up to {known:.3f} s in {wall:.3f} s that were observed"
    return ""


def cells_by_batch(track: Track, batch: Floats, width: str) -> dict[CellKey, Cell]:
    """Return cycles by batch bucket, each fine bucket of time standing in the one of its mean batch."""
    names = np.array([batch_bucket(value) if value > 0 else "" for value in np.nan_to_num(batch)])
    phase = Phase.DECODE if track.is_plain else Phase.VERIFY
    found: dict[CellKey, Cell] = {}
    for name in sorted(set(names.tolist()) - {""}):
        here = names == name
        verify = masked(track.cycle[phase], here) if phase in track.cycle else None
        cell = Cell(masked(track.cycles, here), masked(track.cycle_seconds, here), verify)
        if total(cell.cycles) > 0:
            found[name, width] = cell
    return found
