"""Read a window of one server and build the tracks of every level of evidence that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.context import Context
from specscope_server.acceptance.counts import constant_draft_tokens
from specscope_server.acceptance.gather import Labels, LaunchData, RankData, gather
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.requests import request_sums
from specscope_server.acceptance.statistics import Floats, mean_over, sum_over
from specscope_server.acceptance.windows import fine_window, most_buckets
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.state import AppState
from specscope_server.models import Launch
from specscope_server.store.coverage_reader import read_coverage
from specscope_server.store.lookup import has_successor
from specscope_server.timing.device_track import device_track
from specscope_server.timing.gauge_track import batch_of, cycles_per_second, gauge_tracks
from specscope_server.timing.prints import Shown, read_shown
from specscope_server.timing.probe_track import probe_track
from specscope_server.timing.schemas import Level
from specscope_server.timing.series import (
    Scheduler,
    find_time_series,
    merged,
    read_schedulers,
    speakers_of,
)
from specscope_server.timing.tracks import Track, added

LEVELS = (Level.PROBE, Level.DEVICE_TIMER, Level.GAUGES)
MAX_VALUES = 2_000_000
MIN_BUCKETS = 200
UNKNOWN_WIDTH = "?"


@dataclass(frozen=True, slots=True)
class LaunchTracks:
    """One launch: its gauges, and a track for each level that it has (schedulers added up)."""

    launch: Launch
    data: LaunchData | None
    tracks: dict[Level, Track]
    schedulers: int


@dataclass(frozen=True, slots=True)
class Timed:
    """What a window holds."""

    window: Window
    launches: list[LaunchTracks]
    context: Context

    @property
    def level(self) -> Level:
        """Return the best level that the newest timed launch has; others follow it, or are left out."""
        for one in reversed(self.launches):
            level = best_level(one)
            if level is not Level.NONE:
                return level
        return Level.NONE

    def of_level(self, level: Level) -> list[LaunchTracks]:
        """Return the launches that have a believable track of this level."""
        return [one for one in self.launches if level in one.tracks and one.tracks[level].is_used]

    def alike(self, level: Level) -> list[LaunchTracks]:
        """Return those of them that speculate like the newest one, or do not: a mean over both kinds of
        cycles would be of neither.
        """
        found = self.of_level(level)
        return [one for one in found if one.tracks[level].is_plain == found[-1].tracks[level].is_plain]

    def track(self, level: Level, *, every_kind: bool = False) -> Track | None:
        """Return the tracks of a level, launches added up; ``every_kind``: also those not alike."""
        chosen = self.of_level(level) if every_kind else self.alike(level)
        return added([one.tracks[level] for one in chosen]) if chosen else None


def best_level(one: LaunchTracks) -> Level:
    """Return the best level of one launch. A probe that only sees launching of work stands behind the
    device timer.
    """
    usable = [level for level in LEVELS if level in one.tracks and one.tracks[level].is_used]
    if len(usable) > 1 and usable[0] is Level.PROBE and usable[1] is Level.DEVICE_TIMER:
        track = one.tracks[Level.PROBE]
        if track.clock == "host" and "on" in track.overlap:
            return Level.DEVICE_TIMER
    return usable[0] if usable else Level.NONE


def measure(
    session: Session,
    state: AppState,
    server_id: int,
    launches: Sequence[Launch],
    from_ms: int,
    to_ms: int,
    now_ms: int,
    rank: int | None = None,
    window: Window | None = None,
) -> Timed:
    """Return everything about the time of these launches in [from, to)."""
    series = {
        one: speakers_of(session, one, refs) for one, refs in find_time_series(session, launches).items()
    }
    count = sum(len(refs) for refs in series.values())
    most = min(most_buckets(launches), max(MAX_VALUES // max(count, 1), MIN_BUCKETS))
    fine = window or fine_window(from_ms, to_ms, state.scrape_interval_ms, most)
    schedulers = read_schedulers(session, series, fine)
    gathered = {data.launch.id: data for data in gather(session, launches, fine, rank)}
    shown = read_shown(session, launches, fine)
    found = []
    for launch in launches:
        own = [one for one in merged(schedulers.get(launch.id, [])) if rank in (None, one.dp_rank)]
        tracks = launch_tracks(launch, gathered.get(launch.id), own, fine, shown.get(launch.id, {}))
        found.append(LaunchTracks(launch, gathered.get(launch.id), tracks, max(len(own), 1)))
    requests = request_sums(session, server_id, [one.id for one in launches], fine) if rank is None else None
    context = Context(
        Measured(fine, list(gathered.values()), requests), now_ms, state.stale_after_ms, rank,
        bool(launches) and has_successor(session, launches[-1]),
        read_coverage(session, launches[-1], state.stale_after_ms) if launches else None,
    )  # fmt: skip
    return Timed(fine, found, context)


def launch_tracks(
    launch: Launch,
    data: LaunchData | None,
    schedulers: Sequence[Scheduler],
    window: Window,
    shown: Mapping[Labels, Shown],
) -> dict[Level, Track]:
    """Return the tracks of one launch, by level."""
    found: dict[Level, list[Track]] = {}
    width = width_of(launch, data)
    for scheduler in schedulers:
        probe = probe_track(scheduler)
        if probe is not None:
            found.setdefault(Level.PROBE, []).append(probe)
        timer = _device_track(launch, data, scheduler, width)
        if timer is not None:
            found.setdefault(Level.DEVICE_TIMER, []).append(timer)
    if data is not None and (rates := gauge_tracks(data, width, shown, window)):
        found[Level.GAUGES] = rates
    return {level: added(tracks) for level, tracks in found.items()}


def is_plain(launch: Launch) -> bool:
    """Tell whether a launch is known to decode without speculation."""
    return launch.algorithm is None and launch.version_source == "server_info"


def width_of(launch: Launch, data: LaunchData | None) -> str:
    """Return D as a label: of a plain launch 1, of one whose D varies or is not known "?"."""
    if is_plain(launch):
        return "1"
    width = constant_draft_tokens(data) if data else launch.num_draft_tokens
    return UNKNOWN_WIDTH if width is None else f"{width:.0f}"


def _device_track(launch: Launch, data: LaunchData | None, scheduler: Scheduler, width: str) -> Track | None:
    missing = np.full(scheduler.size, np.nan)
    steps, batch, idle = missing, missing, np.zeros(scheduler.size, dtype=bool)
    if data is not None:
        ranks = [rank for rank in data.ranks.values() if rank.dp_rank == scheduler.dp_rank]
        active, idle = data.activity
        rates = [np.where(active, cycles_per_second(data, rank), np.nan) for rank in ranks]
        steps = sum_over(rates, scheduler.size) * scheduler.span("time.forward")
        batch = mean_over([batch_of(rank, scheduler.size) for rank in ranks], scheduler.size)
    return device_track(
        scheduler, is_plain=is_plain(launch), estimated_cycles=steps, idle=idle, batch=batch, width=width
    )


def emitted(one: LaunchTracks, track: Track) -> Floats:
    """Return tokens that decode cycles emitted, per bucket: counted, else what the cycles are worth."""
    if track.tokens is not None:
        return track.tokens
    counter = one.data.first_of(("tokens.decoded",)) if one.data else None
    if counter is not None:
        return counter.value
    if one.data is None:
        return np.full(track.size, np.nan)
    return sum_over([_by_rates(one.data, track, rank) for rank in one.data.ranks.values()], track.size)


def _by_rates(data: LaunchData, track: Track, rank: RankData) -> Floats:
    throughput = rank.mean.get("throughput.generated", np.full(track.size, np.nan))
    active, _ = data.activity
    return np.where(active, throughput * track.wall / max(len(data.ranks), 1), np.nan)
