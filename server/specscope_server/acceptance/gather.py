"""Read what acceptance needs from the store into plain arrays, one `LaunchData` per launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import (
    Flags,
    Floats,
    active_buckets,
    mean_over,
    sum_over,
)
from specscope_server.kit.ranks import leaders, rank_number
from specscope_server.kit.timerange import Window
from specscope_server.models import Latest, Launch
from specscope_server.store.series_reader import Buckets, SeriesRef, find_series, read_buckets

COUNTERS = ("spec.verify_calls", "tokens.generated", "requests.finished", "tokens.decoded")
GAUGES = (
    "spec.accept_length", "spec.engine_accept_rate", "spec.num_steps", "spec.num_draft_tokens",
    "requests.running", "requests.queued", "throughput.generated",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Growth:
    """One counter of one launch, summed over its label sets; arrays of shape (buckets,), NaN = not
    observed.
    """

    value: Floats
    span_ms: NDArray[np.int64]
    """Observed time per bucket (of the label set that was observed longest)."""

    @property
    def total(self) -> float:
        """Return the growth over the whole window."""
        return float(np.nansum(self.value))


@dataclass(slots=True)
class RankData:
    """Gauges of one data-parallel rank, by metric; arrays of shape (buckets,), NaN = not observed."""

    mean: dict[str, Floats] = field(default_factory=dict)
    low: dict[str, Floats] = field(default_factory=dict)
    high: dict[str, Floats] = field(default_factory=dict)
    last: dict[str, Floats] = field(default_factory=dict)
    decoded: Floats | None = None


@dataclass(slots=True)
class LaunchData:
    """Everything measured about one launch in the window."""

    launch: Launch
    buckets: int
    counters: dict[str, Growth]
    ranks: dict[int, RankData]
    newest_ms: dict[str, int]
    """Metric → time of its newest sample inside the window."""

    @property
    def running(self) -> Floats:
        """Return requests being decoded, summed over ranks."""
        return sum_over(self._rows("requests.running"), self.buckets)

    @property
    def activity(self) -> tuple[Flags, Flags]:
        """Return (active, idle) per bucket."""
        growth = sum_over([counter.value for counter in self.counters.values()], self.buckets)
        return active_buckets(self.running, growth, "tokens.decoded" in self.counters)

    def gauge(self, metric: str) -> Floats:
        """Return the mean over ranks, each only where that rank was active (gauges freeze in idle)."""
        active, _ = self.activity
        rows = [
            np.where(self._rank_active(rank, active), rank.mean[metric], np.nan)
            for rank in self.ranks.values()
            if metric in rank.mean
        ]
        return mean_over(rows, self.buckets)

    def total(self, metric: str) -> Floats:
        """Return the sum of a gauge over ranks."""
        return sum_over(self._rows(metric), self.buckets)

    def extremes(self, metric: str) -> tuple[float, float] | None:
        """Return (lowest, highest) positive sample of any rank in the window; None = never observed."""
        low = [
            array[array > 0] for rank in self.ranks.values() if (array := rank.low.get(metric)) is not None
        ]
        high = [
            array[array > 0] for rank in self.ranks.values() if (array := rank.high.get(metric)) is not None
        ]
        if not any(len(part) for part in low) or not any(len(part) for part in high):
            return None
        return float(np.concatenate(low).min()), float(np.concatenate(high).max())

    def _rows(self, metric: str) -> list[Floats]:
        return [rank.mean[metric] for rank in self.ranks.values() if metric in rank.mean]

    def _rank_active(self, rank: RankData, active: Flags) -> Flags:
        running = rank.mean.get("requests.running")
        if running is None or len(self.ranks) == 1:
            return active
        decoded = np.nan_to_num(rank.decoded) > 0 if rank.decoded is not None else False
        return active & (np.isnan(running) | (running > 0) | decoded)


def gather(
    session: Session, launches: Sequence[Launch], window: Window, rank: int | None = None
) -> list[LaunchData]:
    """Return the data of each launch that has any, in the order given.

    ``rank``: only what this data-parallel rank wrote itself. Counters of finished requests belong to the
    whole server, so they are left out then.
    """
    ids = [launch.id for launch in launches]
    found = find_series(session, metrics=(*COUNTERS, *GAUGES), launch_ids=ids) if ids else []
    if rank is not None:
        found = [ref for ref in found if _is_of_rank(ref, rank)]
    buckets = read_buckets(session, found, window) if found else {}
    newest = _newest(session, list(buckets), window)
    by_launch: dict[int | None, list[SeriesRef]] = {}
    for ref in found:
        if ref.id in buckets:
            by_launch.setdefault(ref.launch_id, []).append(ref)
    return [
        _launch_data(launch, by_launch[launch.id], buckets, newest, window)
        for launch in launches
        if launch.id in by_launch
    ]


def _is_of_rank(ref: SeriesRef, rank: int) -> bool:
    of_scheduler = ref.metric in GAUGES or ref.metric == "tokens.decoded"
    return of_scheduler and rank_number(ref.labels, "dp_rank") == rank


def _launch_data(
    launch: Launch, refs: list[SeriesRef], buckets: dict[int, Buckets], newest: dict[int, int], window: Window
) -> LaunchData:
    data = LaunchData(launch, window.buckets, {}, {}, {})
    by_metric: dict[str, list[SeriesRef]] = {}
    for ref in refs:
        by_metric.setdefault(ref.metric, []).append(ref)
    for metric, group in by_metric.items():
        kept = leaders((ref, ref.labels) for ref in group)
        data.newest_ms[metric] = max(_as_of(ref, buckets, newest, window) for ref in kept)
        if metric in COUNTERS:
            data.counters[metric] = _growth([buckets[ref.id] for ref in kept], window.buckets)
        if metric in GAUGES or metric == "tokens.decoded":
            _add_to_ranks(data, metric, kept, buckets)
    return data


def _growth(parts: list[Buckets], buckets: int) -> Growth:
    value = sum_over([np.where(part.n > 0, part.sum, np.nan) for part in parts], buckets)
    return Growth(value, np.max([part.span_ms for part in parts], axis=0))


def _add_to_ranks(data: LaunchData, metric: str, kept: list[SeriesRef], buckets: dict[int, Buckets]) -> None:
    for ref in kept:
        rank = data.ranks.setdefault(rank_number(ref.labels, "dp_rank"), RankData())
        part = buckets[ref.id]
        mean = np.where(part.n > 0, part.sum / np.maximum(part.n, 1), np.nan)
        if metric == "tokens.decoded":
            grown = np.where(part.n > 0, part.sum, np.nan)
            rank.decoded = grown if rank.decoded is None else sum_over([rank.decoded, grown], data.buckets)
        elif metric not in rank.mean:
            rank.mean[metric], rank.last[metric] = mean, part.last
            rank.low[metric], rank.high[metric] = part.min, part.max


def _newest(session: Session, series_ids: list[int], window: Window) -> dict[int, int]:
    found: dict[int, int] = {}
    for start in range(0, len(series_ids), 500):
        query = select(Latest.series_id, Latest.time_ms).where(
            Latest.series_id.in_(series_ids[start : start + 500])
        )
        found |= dict(session.execute(query).all())
    return {key: time_ms for key, time_ms in found.items() if window.from_ms <= time_ms < window.to_ms}


def _as_of(ref: SeriesRef, buckets: dict[int, Buckets], newest: dict[int, int], window: Window) -> int:
    """Return when the newest sample in the window was taken; exact when it is the series' newest of all."""
    if ref.id in newest:
        return newest[ref.id]
    last = int(np.flatnonzero(buckets[ref.id].n > 0)[-1])
    return min(window.from_ms + (last + 1) * window.step_ms, window.to_ms) - 1
