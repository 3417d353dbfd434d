"""The length of a cycle from rates alone: T_c = running × τ / throughput. Needs no timer in the engine."""

from __future__ import annotations

import numpy as np

from specscope_server.acceptance.gather import LaunchData, RankData
from specscope_server.acceptance.statistics import Flags, Floats
from specscope_server.timing.device_track import cells_by_batch
from specscope_server.timing.phases import Phase
from specscope_server.timing.schemas import Level
from specscope_server.timing.tracks import Track

RATES = ("throughput.generated", "requests.running", "spec.accept_length")
WITH_PREFILL = (
    "the engine's throughput is over wall time, so prefills between cycles are in T_c; and its gauge "
    "of running requests is also written at prefills, before the new ones join, so under a changing load T_c "
    "reads too short"
)
LONGEST = 4.0
"""A window whose cycles look so many times longer than usual holds an idle stretch: the engine's first window
after one spans it. It is left out."""
HELD_VALUES, FINE_MS = 2, 30_000
MAX_GAP = 3
"""Scrapes that one sample may stand for."""


def gauge_tracks(data: LaunchData, width: str) -> list[Track]:
    """Return one track for each scheduler of a launch that published rates."""
    active, _ = data.activity
    found = [_track(data, rank, active, width) for rank in data.ranks.values()]
    return [track for track in found if track is not None]


def cycles_per_second(data: LaunchData, rank: RankData) -> Floats:
    """Return throughput / (running × τ) per bucket of one scheduler; NaN where a part is missing."""
    missing = np.full(data.buckets, np.nan)
    throughput, running, length = (rank.mean.get(metric, missing) for metric in RATES)
    if data.is_plain:
        length = np.where(np.isnan(running), np.nan, 1.0)
    tokens = running * length
    return np.where((tokens > 0) & (throughput > 0), throughput / np.where(tokens > 0, tokens, 1.0), np.nan)


def batch_of(rank: RankData, size: int) -> Floats:
    """Return requests decoded together per bucket."""
    return rank.mean.get("requests.running", np.full(size, np.nan))


def _track(data: LaunchData, rank: RankData, active: Flags, width: str) -> Track | None:
    rate = np.where(active, cycles_per_second(data, rank), np.nan)
    if np.isnan(rate).all():
        return None
    held = (rate < float(np.nanmedian(rate)) / LONGEST) | _after_idle(data, rank)
    rate[held] = np.nan
    if np.isnan(rate).all():
        return None
    wall = _spans(rank, data.step_ms, data.buckets)
    wall[held] = np.nan
    cycles = np.where(np.isnan(rate), np.nan, wall) / _mean_length(rate, wall)
    busy = cycles / rate
    track = Track(
        level=Level.GAUGES, clock="wall", is_plain=data.is_plain, cycles=cycles, wall=wall,
        cycle={Phase.UNATTRIBUTED: busy}, beside={Phase.IDLE: np.where(active, 0.0 * wall, wall)},
        notes=(WITH_PREFILL,), newest_ms=max(data.newest_ms.values(), default=None),
        source="running × τ / throughput (sglang:num_running_reqs, spec_accept_length, gen_throughput)",
    )  # fmt: skip
    track.cells.update(cells_by_batch(track, batch_of(rank, data.buckets), width))
    return track


def _after_idle(data: LaunchData, rank: RankData) -> Flags:
    """Return the buckets that may show a window which began before an idle stretch.

    After one the gauge shows the old value, then that of a window that spans the stretch: values are taken up
    from the third on.
    """
    active, idle = data.activity
    shown = rank.mean.get(RATES[0], np.full(data.buckets, np.nan))
    held = np.zeros(data.buckets, dtype=bool)
    if data.step_ms > FINE_MS:
        return held
    values, last = HELD_VALUES, np.nan
    for index in np.flatnonzero(idle | (active & ~np.isnan(shown))):
        if idle[index]:
            values, last = 0, np.nan
        elif values < HELD_VALUES or shown[index] == last:
            values += shown[index] != last
            last = shown[index]
            held[index] = True
        else:
            last = np.nan
    return held


def _mean_length(rate: Floats, wall: Floats) -> float:
    """Return T_c in seconds: the mean of the windows' own, each counting alike.

    A gauge shows the last window that ended, for as long as the next one takes. How often a window is seen
    says nothing about its own length, so that a mean of rates would count slow windows too little.
    """
    known = ~np.isnan(rate)
    return float((wall[known] / rate[known]).sum() / wall[known].sum())


def _spans(rank: RankData, step_ms: int, size: int) -> Floats:
    """Return seconds that each sample stands for: those since the one before, a longer gap is none."""
    spans = np.full(size, np.nan)
    seen = np.flatnonzero(~np.isnan(rank.mean.get("requests.running", spans)))
    if len(seen):
        since = np.diff(seen, prepend=seen[0] - 1)
        usual = float(np.median(since[1:])) if len(seen) > 1 else 1.0
        spans[seen] = np.minimum(np.where(since > MAX_GAP * usual, usual, since), MAX_GAP * usual)
        spans[seen[0]] = usual
    return spans * step_ms / 1_000
