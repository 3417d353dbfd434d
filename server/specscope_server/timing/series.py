"""Read the counters of time from the store, by scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from sqlalchemy.orm import Session

from specscope_collectors.catalogue import CATALOGUE
from specscope_server.acceptance.gather import target_series
from specscope_server.acceptance.statistics import Floats, sum_over
from specscope_server.kit.ranks import mirror_group, rank_number
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.store.latest import newest_times
from specscope_server.store.series_finder import made_of_series
from specscope_server.store.series_reader import Buckets, SeriesRef, find_series, read_buckets

PROBE = (
    "time.phase",
    "time.cycle",
    "time.cycles_timed",
    "time.warm_up",
    "time.warm_up_cycles",
    "probe.wall_time",
    "probe.cycles_seen",
)
DEVICE_TIMER = ("time.forward",)
ENGINE = ("time.scheduler_stage", "time.scheduler_idle", "engine.graph_passes")
FINE_MS = 30_000
"""Up to this length, a bucket in which a launch began is left out: part of it was the engine's start."""
SPEAKS = "probe.wall_time"
"""Only the rank of a group that reports everything has this."""

Place: TypeAlias = tuple[int, int]
"""(pp_rank, tp_rank) inside a group of mirrors."""
GroupKey: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """Growth of one counter of one scheduler; arrays of shape (buckets,), NaN = not observed."""

    labels: Mapping[str, str]
    value: Floats
    span_seconds: Floats


@dataclass(slots=True)
class Scheduler:
    """The counters of one scheduler process, by metric."""

    dp_rank: int
    place: Place
    size: int
    counters: dict[str, list[Counted]] = field(default_factory=dict)
    newest_ms: int | None = None

    def find(self, metric: str, **labels: str) -> list[Counted]:
        """Return the counters of a metric with these labels."""
        found = self.counters.get(metric, [])
        return [each for each in found if labels.items() <= each.labels.items()]

    def sum(self, metric: str, **labels: str) -> Floats:
        """Return their growth added up; NaN where none was observed."""
        return sum_over([each.value for each in self.find(metric, **labels)], self.size)

    def values_of(self, metric: str, label: str) -> list[str]:
        """Return the values that a label takes."""
        return sorted({each.labels[label] for each in self.counters.get(metric, []) if label in each.labels})

    def span(self, *metrics: str) -> Floats:
        """Return observed seconds per bucket: of the counter that was observed longest."""
        spans = [each.span_seconds for metric in metrics for each in self.counters.get(metric, [])]
        if not spans:
            return np.full(self.size, np.nan)
        longest = np.max(spans, axis=0)
        return np.where(longest > 0, longest, np.nan)


def find_time_series(session: Session, launches: Sequence[Launch]) -> dict[Launch, list[SeriesRef]]:
    """Return launch → series of time of the model that the launch serves."""
    ids = [launch.id for launch in launches]
    metrics = (*PROBE, *DEVICE_TIMER, *ENGINE)
    found = find_series(session, metrics=metrics, launch_ids=ids) if ids else []
    return {launch: target_series(session, launch, found)[0] for launch in launches}


def speakers(refs: Sequence[SeriesRef]) -> list[SeriesRef]:
    """Return the series of one scheduler of each group of mirrors: of the probe the rank that reports
    everything, of the engine the first.
    """
    kept: list[SeriesRef] = []
    for group in _by_group(refs).values():
        talks = [place for place, own in group.items() if any(ref.metric == SPEAKS for ref in own)]
        times = [place for place, own in group.items() if any(ref.metric in DEVICE_TIMER for ref in own)]
        first = min(times or group)
        for place, own in group.items():
            kept += [ref for ref in own if place == (min(talks) if ref.metric in PROBE and talks else first)]
    return kept


def read_schedulers(
    session: Session, series: Mapping[Launch, Sequence[SeriesRef]], window: Window
) -> dict[int, list[Scheduler]]:
    """Return launch id → its schedulers. Series of mirrors stay apart: each place is a scheduler.

    The interval in which a launch was first seen is left out: the engine was starting in part of it.
    """
    every = [ref for refs in series.values() for ref in refs]
    buckets = read_buckets(session, every, window) if every else {}
    newest = newest_times(session, list(buckets))
    found: dict[int, list[Scheduler]] = {}
    for launch, refs in series.items():
        start = _start_bucket(launch, window)
        for group in _groups(session, launch, [ref for ref in refs if ref.id in buckets]).values():
            for place, own in sorted(group.items()):
                scheduler = _scheduler(place, own, buckets, window, start)
                times = [newest[ref.id] for ref in own if newest.get(ref.id, 0) < window.to_ms]
                scheduler.newest_ms = max(times, default=None)
                found.setdefault(launch.id, []).append(scheduler)
    return found


def _start_bucket(launch: Launch, window: Window) -> int | None:
    place = (launch.first_seen_ms - window.from_ms) // window.step_ms
    return place if window.step_ms <= FINE_MS and 0 <= place < window.buckets else None


def _scheduler(
    place: Place,
    refs: Sequence[SeriesRef],
    buckets: Mapping[int, Buckets],
    window: Window,
    start: int | None,
) -> Scheduler:
    scheduler = Scheduler(rank_number(refs[0].labels, "dp_rank"), place, window.buckets)
    for ref in refs:
        part = buckets[ref.id]
        value = np.where(part.n > 0, part.sum, np.nan)
        span = part.span_ms / 1_000
        if start is not None:
            value[start], span[start] = np.nan, 0.0
        scheduler.counters.setdefault(ref.metric, []).append(Counted(ref.labels, value, span))
    return scheduler


def merged(schedulers: Iterable[Scheduler]) -> list[Scheduler]:
    """Return one scheduler for each data-parallel rank, with the counters of all its places.

    For `speakers` only: then no metric stands at two places of a group.
    """
    found: dict[int, Scheduler] = {}
    for one in schedulers:
        whole = found.setdefault(one.dp_rank, Scheduler(one.dp_rank, one.place, one.size))
        for metric, counters in one.counters.items():
            whole.counters.setdefault(metric, []).extend(counters)
        whole.newest_ms = max(filter(None, (whole.newest_ms, one.newest_ms)), default=None)
    return [found[rank] for rank in sorted(found)]


def speakers_of(session: Session, launch: Launch, refs: Sequence[SeriesRef]) -> list[SeriesRef]:
    """Return what `speakers` does, told in a pass only anew where the launch has other series."""
    own = tuple(ref.id for ref in refs)
    return made_of_series(session, ("speakers", own), launch.id, lambda: speakers(refs))


def _groups(
    session: Session, launch: Launch, refs: Sequence[SeriesRef]
) -> dict[GroupKey, dict[Place, list[SeriesRef]]]:
    own = tuple(ref.id for ref in refs)
    return made_of_series(session, ("groups", own), launch.id, lambda: _by_group(refs))


def _by_group(refs: Iterable[SeriesRef]) -> dict[GroupKey, dict[Place, list[SeriesRef]]]:
    groups: dict[GroupKey, dict[Place, list[SeriesRef]]] = {}
    for ref in refs:
        own = CATALOGUE[ref.metric].labels
        outer = {name: value for name, value in ref.labels.items() if name not in own}
        place = (rank_number(ref.labels, "pp_rank"), rank_number(ref.labels, "tp_rank"))
        groups.setdefault(mirror_group(outer), {}).setdefault(place, []).append(ref)
    return groups
