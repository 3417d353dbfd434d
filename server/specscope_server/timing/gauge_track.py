"""The length of a cycle from rates alone: T_c = running × τ / throughput. Needs no timer in the engine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.gather import Labels, LaunchData, RankData
from specscope_server.acceptance.statistics import Floats, sum_over
from specscope_server.kit.timerange import Window
from specscope_server.timing.device_track import cells_by_batch
from specscope_server.timing.phases import Phase
from specscope_server.timing.print_windows import Seen, Windows, windows_of
from specscope_server.timing.prints import LENGTH, RUNNING, THROUGHPUT, Shown
from specscope_server.timing.schemas import Level
from specscope_server.timing.tracks import Track

WITH_PREFILL = (
    "too few log windows hold no prefill, so that prefills between cycles, and pauses shorter than a window, "
    "are in T_c: it is the time from print to print over the cycles between them, where that number is known"
)
SUMMARIES = (
    "this range is read from summaries of a minute or more, where windows with prefills cannot be told: they "
    "are in T_c, and under a changing load it reads too short"
)
SOURCE = "running × τ / throughput (sglang:num_running_reqs, spec_accept_length, gen_throughput)"
LOG_SOURCE = "running × τ / throughput of each Decode line"
LONGEST = 4.0
"""A bucket whose cycles look so many times longer than usual holds an idle stretch. It is left out."""
MAX_GAP = 3
"""Scrapes that one sample may stand for."""


def gauge_tracks(data: LaunchData, width: str, shown: Mapping[Labels, Shown], window: Window) -> list[Track]:
    """Return one track for each scheduler of a launch that published rates.

    ``shown``: what each told, moment by moment; where that is not kept, means over buckets stand in.
    """
    found = [
        _by_windows(data, rank, width, shown[labels], window)
        if labels in shown
        else _by_means(data, rank, width)
        for labels, rank in data.ranks.items()
    ]
    return [track for track in found if track is not None]


def cycles_per_second(data: LaunchData, rank: RankData) -> Floats:
    """Return throughput / (running × τ) per bucket of one scheduler; NaN where a part is missing."""
    missing = np.full(data.buckets, np.nan)
    throughput, running, length = (rank.mean.get(metric, missing) for metric in (THROUGHPUT, RUNNING, LENGTH))
    if data.is_plain:
        length = np.where(np.isnan(running), np.nan, 1.0)
    tokens = running * length
    return np.where((tokens > 0) & (throughput > 0), throughput / np.where(tokens > 0, tokens, 1.0), np.nan)


def batch_of(rank: RankData, size: int) -> Floats:
    """Return requests decoded together per bucket."""
    return rank.mean.get(RUNNING, np.full(size, np.nan))


def _by_windows(data: LaunchData, rank: RankData, width: str, shown: Shown, window: Window) -> Track | None:
    """Split active time into cycles (T_c of windows without a prefill) and what lies between them."""
    _, idle = data.activity
    prefill = sum_over(data.prefill, data.buckets) > 0 if data.prefill else None
    found = windows_of(shown, Seen(window, idle, prefill), is_plain=data.is_plain)
    if found is None:
        return None
    place = ((found.time_ms - window.from_ms) // window.step_ms).astype(np.int64)
    cycles, busy, inside, tokens, weighted = (
        _into_buckets(values, place, data.buckets)
        for values in (found.cycles, found.seconds, found.inside, found.tokens, found.running * found.cycles)
    )
    idle_seconds = np.where(idle, _spans(rank, data.step_ms, data.buckets), 0.0 * busy)
    track = Track(
        level=Level.GAUGES, clock="wall", is_plain=data.is_plain, cycles=cycles,
        wall=sum_over([busy, idle_seconds], data.buckets), cycle={Phase.UNATTRIBUTED: inside},
        beside={Phase.UNATTRIBUTED: busy - inside, Phase.IDLE: idle_seconds}, notes=(_note(found),),
        tokens=tokens,
        newest_ms=max(data.newest_ms.values(), default=None),
        source=LOG_SOURCE if shown.is_log else SOURCE, tells_cycles=found.tells_cycles,
    )  # fmt: skip
    track.cells.update(cells_by_batch(track, weighted / cycles, width))
    return track


def _note(found: Windows) -> str:
    if not found.tells_cycles:
        return WITH_PREFILL
    clean, every = int(found.is_clean.sum()), len(found.is_clean)
    return (
        f"T_c is that of the {clean} of {every} log windows without a prefill; of the others, what cycles do "
        "not take is shown as unattributed between them"
    )


def _into_buckets(values: Floats, place: NDArray[np.int64], size: int) -> Floats:
    found = np.bincount(place, weights=values, minlength=size)
    return np.where(np.bincount(place, minlength=size) > 0, found, np.nan)


def _by_means(data: LaunchData, rank: RankData, width: str) -> Track | None:
    """Return the track of a range whose single samples are not read."""
    active, _ = data.activity
    rate = np.where(active, cycles_per_second(data, rank), np.nan)
    if np.isnan(rate).all():
        return None
    held = rate < float(np.nanmedian(rate)) / LONGEST
    rate[held] = np.nan
    wall = _spans(rank, data.step_ms, data.buckets)
    wall[held] = np.nan
    busy = np.where(np.isnan(rate), np.nan, wall)
    track = Track(
        level=Level.GAUGES, clock="wall", is_plain=data.is_plain, cycles=busy * rate, wall=wall,
        cycle={Phase.UNATTRIBUTED: busy}, beside={Phase.IDLE: np.where(active, 0.0 * wall, wall)},
        notes=(SUMMARIES,), newest_ms=max(data.newest_ms.values(), default=None), source=SOURCE,
        tells_cycles=False,
    )  # fmt: skip
    track.cells.update(cells_by_batch(track, batch_of(rank, data.buckets), width))
    return track


def _spans(rank: RankData, step_ms: int, size: int) -> Floats:
    """Return seconds that each sample stands for: those since the one before, a longer gap is none."""
    spans = np.full(size, np.nan)
    seen = np.flatnonzero(~np.isnan(rank.mean.get(RUNNING, spans)))
    if len(seen):
        since = np.diff(seen, prepend=seen[0] - 1)
        usual = float(np.median(since[1:])) if len(seen) > 1 else 1.0
        spans[seen] = np.minimum(np.where(since > MAX_GAP * usual, usual, since), MAX_GAP * usual)
        spans[seen[0]] = usual
    return spans * step_ms / 1_000
