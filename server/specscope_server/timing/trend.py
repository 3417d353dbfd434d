"""Where the time went, bucket by bucket, from one level of evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.schemas import ActivityState
from specscope_server.acceptance.statistics import Flags, Floats
from specscope_server.acceptance.windows import group_any, group_sum, most_buckets, refine
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.state import AppState
from specscope_server.store.lookup import choose_launches, server_by_name
from specscope_server.timing.evidence import evidence_note
from specscope_server.timing.measure import Timed, measure
from specscope_server.timing.phases import Phase
from specscope_server.timing.schemas import PhaseTime, TimingTrend
from specscope_server.timing.service import Question
from specscope_server.timing.statistics import total
from specscope_server.timing.tracks import Track
from specscope_server.timing.words import marker

NOISE = 0.05
"""Sums are written up to a second after they grew: a bucket may lack this share of its wall, which is 0."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Arrays of shape (buckets,); NaN = not observed."""

    wall: Floats
    cycles: Floats
    active: Flags
    idle: Flags


def trend(session: Session, state: AppState, asked: Question) -> TimingTrend:
    """Return the phases over time. Raises `NotFound` for an unknown server or launch."""
    row = server_by_name(session, asked.server)
    window = asked.span.window()
    launches = choose_launches(session, row.id, asked.launch, window.from_ms, window.to_ms)
    fine, parts = refine(window, state.scrape_interval_ms, most_buckets(launches))
    timed = measure(
        session, state, row.id, launches, window.from_ms, window.to_ms, asked.span.now_ms, asked.rank, fine
    )
    track = timed.track(timed.level, every_kind=True)
    phases = _told(track) if track else []
    return TimingTrend.model_validate(
        {
            "server": asked.server,
            "from": to_iso(window.from_ms),
            "to": to_iso(window.to_ms),
            "step_seconds": window.step_ms / 1_000,
            "is_demo": any(launch.is_demo for launch in launches),
            "evidence": timed.level,
            "evidence_note": evidence_note(timed),
            "phases": phases,
            "points": _points(timed, track, phases, window, parts) if track else [],
            "launches": [marker(launch) for launch in launches if launch.first_seen_ms >= window.from_ms],
        }
    )


def _told(track: Track) -> list[Phase]:
    seconds = {phase: track.seconds(phase) for phase in track.phases}
    return [phase for phase, value in seconds.items() if value is not None and total(value) > 0]


def _points(timed: Timed, track: Track, phases: list[Phase], window: Window, parts: int) -> list[PhaseTime]:
    active, idle = timed.context.measured.activity
    columns = _Columns(
        group_sum(track.wall, parts), group_sum(track.cycles, parts), group_any(active, parts),
        group_any(idle, parts),
    )  # fmt: skip
    return [
        _point(columns, phase, values, index, window)
        for phase in phases
        for values in [group_sum(_whole(track, phase), parts)]
        for index in range(window.buckets)
    ]


def _whole(track: Track, phase: Phase) -> Floats:
    """Return a phase's time wherever the scheduler was observed: a phase without growth is 0 there."""
    seconds = track.seconds(phase)
    assert seconds is not None
    return np.where(np.isnan(track.wall), np.nan, np.nan_to_num(seconds))


def _point(columns: _Columns, phase: Phase, values: Floats, index: int, window: Window) -> PhaseTime:
    wall, seconds, cycles = (float(array[index]) for array in (columns.wall, values, columns.cycles))
    is_seen = wall > 0
    seconds = 0.0 if -NOISE * wall <= seconds < 0 else seconds
    is_known = is_seen and seconds >= 0
    has_cycles = is_known and cycles > 0 and phase not in (Phase.IDLE, Phase.WARM_UP)
    state = (
        ActivityState.GAP
        if not is_seen
        else ActivityState.ACTIVE
        if columns.active[index] or cycles > 0
        else ActivityState.IDLE
    )
    return PhaseTime.model_construct(
        time=to_iso(window.from_ms + index * window.step_ms),
        state=state,
        phase=phase,
        seconds=seconds if is_known else None,
        share_of_wall=seconds / wall if is_known else None,
        ms_per_cycle=1_000 * seconds / cycles if has_cycles else None,
        cycles=cycles if cycles > 0 else None,
    )
