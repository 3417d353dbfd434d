"""The few results of a window that everything else words: cycles, tokens, rates, and one row per phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specscope_server.acceptance import numbers
from specscope_server.acceptance.schemas import Number
from specscope_server.timing.measure import LaunchTracks, Timed, emitted
from specscope_server.timing.phases import MEANINGS, TITLES, Phase
from specscope_server.timing.schemas import Level, PhaseRow
from specscope_server.timing.statistics import total
from specscope_server.timing.tracks import Track

SHOWN_ZERO = (Phase.IDLE, Phase.UNATTRIBUTED)
"""Phases that are shown even if they took no time: that they took none is news."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one level over the whole window; None = not known."""

    level: Level
    track: Track
    launches: list[LaunchTracks]
    length: Number
    """τ as the Acceptance page shows it; 1 for plain launches."""
    emitted: float | None
    accepted: float | None
    rate: float | None
    """Tokens per second of active time, all schedulers together."""

    @property
    def cycles(self) -> float:
        """Return the number of cycles."""
        return total(self.track.cycles)

    @property
    def batch(self) -> float | None:
        """Return the mean number of requests in a cycle."""
        length = self.length.value
        if self.emitted is None or not length or not self.cycles:
            return None
        return self.emitted / length / self.cycles

    @property
    def cycle_ms(self) -> float | None:
        """Return T_c."""
        return self.track.cycle_ms.value

    @property
    def active_ms(self) -> float | None:
        """Return active time per cycle."""
        return self.track.active_ms.value


def facts_of(timed: Timed, level: Level | None = None) -> Facts | None:
    """Return the facts of a level, by default of the best one; None without cycles."""
    level = level or timed.level
    launches = timed.alike(level)
    if not launches:
        return None
    track = timed.track(level)
    assert track is not None
    length = numbers.accept_length(timed.context)
    if track.is_plain:
        length = length.model_copy(update={"value": 1.0, "note": "speculation is off"})
    tokens, seconds = _tokens_and_time(launches, level)
    rate = tokens / seconds if tokens is not None and seconds > 0 else None
    return Facts(level, track, launches, length, tokens, _accepted(launches, tokens, length), rate)


def _tokens_and_time(launches: list[LaunchTracks], level: Level) -> tuple[float | None, float]:
    """Return (tokens emitted, active seconds on the clock) over launches: schedulers work side by side."""
    tokens, seconds = 0.0, 0.0
    for one in launches:
        track = one.tracks[level]
        grown = emitted(one, track)
        if np.isnan(grown).all():
            return None, 0.0
        tokens += total(grown)
        sides = one.schedulers if level is not Level.GAUGES else _rank_count(one)
        warm_up = track.beside.get(Phase.WARM_UP)  # whose tokens are counted, too
        seconds += (total(track.active_seconds) + (0.0 if warm_up is None else total(warm_up))) / sides
    return tokens, seconds


def _rank_count(one: LaunchTracks) -> int:
    return max(len(one.data.ranks), 1) if one.data else 1


def _accepted(launches: list[LaunchTracks], tokens: float | None, length: Number) -> float | None:
    """Return accepted drafts: counted where they are, else tokens × (1 − 1/τ)."""
    counted = [one.data.grown("spec.drafts_accepted") if one.data else None for one in launches]
    if counted and all(value is not None for value in counted):
        return sum(value for value in counted if value is not None)
    if tokens is None or not length.value:
        return None
    return tokens * (1 - 1 / length.value)


def phase_rows(facts: Facts) -> list[PhaseRow]:
    """Return one row for each phase that took time, in the order of a cycle."""
    track = facts.track
    wall, whole = total(track.wall), total(track.cycle_seconds)
    rows = []
    for group, is_inside in ((track.cycle, True), (track.beside, False)):
        for phase, values in group.items():
            seconds = total(values)
            if seconds <= 0 and not (phase in SHOWN_ZERO and (is_inside or phase is Phase.IDLE)):
                continue
            rows.append(_row(facts, phase, seconds, is_inside, wall, whole))
    return rows


def _row(facts: Facts, phase: Phase, seconds: float, is_inside: bool, wall: float, whole: float) -> PhaseRow:
    time = facts.track.phase_ms(phase) if is_inside else None
    outside = 1_000 * seconds / facts.cycles if facts.cycles and phase is not Phase.WARM_UP else None
    return PhaseRow(
        phase=phase,
        title=TITLES[phase] if is_inside else _outside(phase),
        meaning=MEANINGS[phase],
        is_in_cycle=is_inside,
        seconds=seconds,
        share_of_wall=seconds / wall if wall else None,
        share_of_cycle=seconds / whole if is_inside and whole else None,
        ms_per_cycle=time.value if time else outside,
        low=time.low if time else None,
        high=time.high if time else None,
        ms_per_accepted_token=_per(seconds, facts.accepted),
        ms_per_emitted_token=_per(seconds, facts.emitted),
    )


def _outside(phase: Phase) -> str:
    return f"{TITLES[phase]}, around prefill" if phase in (Phase.HOST, Phase.UNATTRIBUTED) else TITLES[phase]


def _per(seconds: float, tokens: float | None) -> float | None:
    return 1_000 * seconds / tokens if tokens else None
