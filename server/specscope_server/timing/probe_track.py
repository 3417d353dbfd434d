"""Time as the probe inside the engine measures it: phases of every cycle, by batch size and D."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from specscope_server.acceptance.statistics import Floats, sum_over
from specscope_server.timing.phases import GAP, PROBE_CYCLE, PROBE_PLAIN, PROBE_PREFILL, Phase
from specscope_server.timing.schemas import Level
from specscope_server.timing.series import Scheduler
from specscope_server.timing.statistics import total
from specscope_server.timing.tracks import Cell, CellKey, Track

TOLERANCE = 0.005
"""Rounding and scrapes between two writes; above it, phases longer than their cycle are refused."""
WALL_TOLERANCE = 0.05
"""The device finishes a cycle after the host left it, and sums are exported once a second."""
IDLE_TOLERANCE = 0.02
MOST = 0.9
"""Share of the cycles seen that must be timed, or else the timed ones are a sample."""
NO_DRAFTS = "0"
LAUNCHES_ONLY = (
    "with an overlapping scheduler the host's clock sees work being launched, not done: the cycle's length "
    "is right, its parts are not known"
)
SAMPLED = "the probe times every k-th cycle; parts of the wall are scaled up to all cycles"


def probe_track(scheduler: Scheduler) -> Track | None:
    """Return what the probe measured; None without a timed cycle."""
    clock = _clock(scheduler)
    if clock is None:
        return None
    overlap = " and ".join(scheduler.values_of("time.phase", "overlap"))
    is_plain = not total(scheduler.sum("time.cycles_timed", kind="speculative", clock=clock)) > 0
    kind, names = ("plain", PROBE_PLAIN) if is_plain else ("speculative", PROBE_CYCLE)
    cycle = _phases(scheduler, names, clock)
    cycle[Phase.HOST] = _gaps(scheduler, clock, is_plain)
    cycle = {phase: cycle[phase] for phase in Phase if phase in cycle}
    others = PROBE_PREFILL if is_plain else {**PROBE_PREFILL, **PROBE_PLAIN}
    beside = _phases(scheduler, others, clock)
    problem = _excess(scheduler, clock)
    is_blind = clock == "host" and "on" in overlap
    if is_blind:
        whole = sum_over(list(cycle.values()), scheduler.size)
        cycle = {Phase.UNATTRIBUTED: whole}
        beside = {Phase.UNATTRIBUTED: sum_over(list(beside.values()), scheduler.size)}
    cycles = scheduler.sum("time.cycles_timed", kind=kind, clock=clock)
    notes = (LAUNCHES_ONLY,) if is_blind else ()
    track = Track(
        level=Level.PROBE, clock=clock, is_plain=is_plain, cycles=cycles,
        wall=scheduler.span("probe.wall_time"), cycle=cycle, beside=beside,
        cells=_cells(scheduler, kind, clock, is_blind=is_blind),
        plain_cells={} if is_plain else _cells(scheduler, "plain", clock, is_blind=is_blind),
        overlap=overlap, notes=notes, problem=problem, newest_ms=scheduler.newest_ms,
        warm_up_cycles=total(scheduler.sum("time.warm_up_cycles", clock=clock)),
        source=f"the probe's specscope_phase_seconds_total, clock={clock}",
    )  # fmt: skip
    return _filled_up(scheduler, track)


def _clock(scheduler: Scheduler) -> str | None:
    for clock in ("device", "host"):
        for kind in ("speculative", "plain"):
            if total(scheduler.sum("time.cycles_timed", kind=kind, clock=clock)) > 0:
                return clock
    return None


def _phases(scheduler: Scheduler, names: Mapping[str, Phase], clock: str) -> dict[Phase, Floats]:
    parts: dict[Phase, list[Floats]] = {}
    for raw, phase in names.items():
        found = scheduler.find("time.phase", phase=raw, clock=clock)
        if found:
            parts.setdefault(phase, []).extend(each.value for each in found)
    return {phase: sum_over(values, scheduler.size) for phase, values in parts.items()}


def _gaps(scheduler: Scheduler, clock: str, is_plain: bool) -> Floats:
    """Return the gaps before cycles of the kind: those before plain steps and prefills have D = 0."""
    found = [
        each.value
        for each in scheduler.find("time.phase", phase=GAP, clock=clock)
        if (each.labels.get("num_draft_tokens") == NO_DRAFTS) == is_plain
    ]
    return sum_over(found, scheduler.size)


def _excess(scheduler: Scheduler, clock: str) -> str:
    """Return why the phases cannot be parts of their cycles; '' = they can."""
    for kind, names in (("speculative", PROBE_CYCLE), ("plain", PROBE_PLAIN), ("prefill", PROBE_PREFILL)):
        whole = total(scheduler.sum("time.cycle", kind=kind, clock=clock))
        parts = sum(total(scheduler.sum("time.phase", phase=name, clock=clock)) for name in names)
        if parts > whole * (1 + TOLERANCE) + 1e-6:
            return f"phases of {kind} cycles take {parts:.3f} s, the cycles themselves {whole:.3f} s"
    return ""


def _filled_up(scheduler: Scheduler, track: Track) -> Track:
    """Add idle, warm-up and what was seen but not timed, so that everything adds up to the wall."""
    busy = scheduler.sum("probe.wall_time")
    warm_up = np.nan_to_num(scheduler.sum("time.warm_up", clock=track.clock))
    beside = {**track.beside, Phase.HOST: _gaps(scheduler, track.clock, not track.is_plain)}
    whole = replace(track, beside=beside)
    timed = np.nan_to_num(whole.active_seconds)
    work = np.nan_to_num(busy) - warm_up
    if _is_sampled(scheduler, track):
        whole = _scaled(whole, float(work.sum() / timed.sum()))
    elif timed.sum() > (1 + WALL_TOLERANCE) * work.sum():
        reason = f"timed cycles take {timed.sum():.3f} s, the wall of all cycles is {work.sum():.3f} s"
        whole = replace(whole, problem=track.problem or reason)
    elif work.sum() > timed.sum():
        known = np.nan_to_num(beside.get(Phase.UNATTRIBUTED, np.zeros(track.size)))
        whole = replace(whole, beside={**beside, Phase.UNATTRIBUTED: known + work - timed})
    return _with_idle(whole, busy, warm_up)


def _is_sampled(scheduler: Scheduler, track: Track) -> bool:
    """Tell whether far fewer cycles were timed than seen."""
    every = total(scheduler.sum("time.cycles_timed", clock=track.clock))
    timed = every - total(scheduler.sum("time.cycles_timed", clock=track.clock, kind=GAP))
    return 0 < timed < MOST * (total(scheduler.sum("probe.cycles_seen")) - track.warm_up_cycles)


def _scaled(track: Track, scale: float) -> Track:
    return replace(
        track,
        cycles=track.cycles * scale,
        cycle={phase: value * scale for phase, value in track.cycle.items()},
        beside={phase: value * scale for phase, value in track.beside.items()},
        notes=(*track.notes, SAMPLED),
    )


def _with_idle(track: Track, busy: Floats, warm_up: Floats) -> Track:
    """Wall that no cycle and no gap took is idle. Sums are exported up to a second late, so that one bucket
    may seem to hold more work than time; over the window that evens out.
    """
    idle, wall = track.wall - busy, total(track.wall)
    problem = track.problem
    if total(idle) < -IDLE_TOLERANCE * wall:
        problem = problem or f"cycles took {total(busy):.3f} s of {wall:.3f} s that were observed"
    elif total(idle) < 0:
        idle = 0.0 * track.wall
    beside = {**track.beside, Phase.WARM_UP: warm_up, Phase.IDLE: idle}
    return replace(
        track, beside={phase: beside[phase] for phase in Phase if phase in beside}, problem=problem
    )


def _cells(scheduler: Scheduler, kind: str, clock: str, *, is_blind: bool) -> dict[CellKey, Cell]:
    found: dict[CellKey, Cell] = {}
    for each in scheduler.find("time.cycles_timed", kind=kind, clock=clock):
        batch, width = each.labels.get("batch", ""), each.labels.get("num_draft_tokens", "")
        own = {"batch": batch, "num_draft_tokens": width, "clock": clock}
        gap = np.nan_to_num(scheduler.sum("time.phase", phase=GAP, **own))
        seconds = scheduler.sum("time.cycle", kind=kind, **own) + gap
        name = "decode" if kind == "plain" else "verify"
        verify = None if is_blind else scheduler.sum("time.phase", phase=name, **own)
        cycles = scheduler.sum("time.cycles_timed", kind=kind, **own)
        found[batch, width] = Cell(cycles, seconds, verify)
    return found
