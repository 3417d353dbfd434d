"""Read what acceptance needs from the store into plain arrays, one `LaunchData` per launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_collectors.catalogue import CATALOGUE
from specscope_server.acceptance.activity import late_idle, standstill
from specscope_server.acceptance.engine_rates import Decision
from specscope_server.acceptance.log_definitions import log_definitions
from specscope_server.acceptance.plain import is_plain
from specscope_server.acceptance.statistics import Flags, Floats, active_buckets, sum_over
from specscope_server.kit.ranks import homes, leaders, mirror_group, rank_number
from specscope_server.kit.targets import of_target, target_names
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.series.statistics import combine
from specscope_server.store.latest import newest_times
from specscope_server.store.series_finder import made_of_series
from specscope_server.store.series_reader import Buckets, SeriesRef, find_series, read_buckets

DERIVING = ("tokens.generated", "requests.finished", "spec.verify_calls")
"""Counters from which accepted drafts are derived, as `derived_accepted` takes them."""
DRAFTS = ("spec.cycles", "spec.drafts_proposed", "spec.drafts_accepted")
"""Counters of cycles and drafts themselves; the last two may be split by position, whose series add up."""
LACKS = "lacks"
UNPAIRED = ("cycles", "accepted")
"""Values of the label `LACKS`: counts of drafts without their cycles, or the other way round. Divided by
those of other intervals they would give a wrong τ."""
CYCLES = ("spec.cycles", "spec.verify_calls")
LIVE = ("tokens.decoded", "tokens.emitted")
"""Counters that grow with each cycle."""
COUNTERS = (*DERIVING, *DRAFTS, *LIVE)
DISTURBANCES = ("requests.aborted", "requests.retracted")
"""Counters of what makes derived counts uncertain."""
PREFILL = ("tokens.prefill_computed", "tokens.prefill_cached")
GAUGES = (
    "spec.accept_length", "spec.engine_accept_rate", "spec.num_steps", "spec.num_draft_tokens",
    "requests.running", "requests.queued", "throughput.generated",
)  # fmt: skip

Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """One counter of one launch, summed over its label sets; arrays of shape (buckets,), NaN = not seen."""

    value: Floats
    span_ms: NDArray[np.int64]
    """Observed time per bucket (of the label set that was observed longest)."""
    scrapes: NDArray[np.int64]
    """Samples per bucket (of the label set that has most)."""

    @property
    def total(self) -> float:
        """Return the growth over the whole window."""
        return float(np.nansum(self.value))


@dataclass(slots=True)
class RankData:
    """Gauges of one scheduler, by metric; arrays of shape (buckets,), NaN = not observed."""

    dp_rank: int = 0
    mean: dict[str, Floats] = field(default_factory=dict)
    low: dict[str, Floats] = field(default_factory=dict)
    high: dict[str, Floats] = field(default_factory=dict)
    last: dict[str, Floats] = field(default_factory=dict)
    decoded: Floats | None = None


@dataclass
class LaunchData:
    """Everything measured about one launch in the window."""

    launch: Launch
    buckets: int
    counters: dict[str, Growth]
    ranks: dict[Labels, RankData]
    """One per group of mirrors: data-parallel ranks, and what a router or an operator tells apart."""
    newest_ms: dict[str, int]
    """Metric → time of its newest sample inside the window."""
    step_ms: int
    note: str = ""
    """What a reader must know about the choice of series; empty = nothing."""
    disturbances: dict[str, float] = field(default_factory=dict)
    """`DISTURBANCES` metric → growth in the window."""
    prefill: list[Floats] = field(default_factory=list)
    """Growth of the `PREFILL` counters."""
    log_decision: Decision | None = None
    """What reading the launch's log decided about the printed rate."""

    @property
    def running(self) -> Floats:
        """Return requests being decoded, summed over ranks."""
        return sum_over(self._rows("requests.running"), self.buckets)

    @cached_property
    def activity(self) -> tuple[Flags, Flags]:
        """Return (active, idle) per bucket."""
        growth = sum_over([counter.value for counter in self.counters.values()], self.buckets)
        is_live = any(metric in self.counters for metric in LIVE)
        active, idle = active_buckets(self.running, growth, is_live)
        late = self._late_idle(active | idle)
        return active & ~late, idle | late

    def _late_idle(self, observed: Flags) -> Flags:
        decoded = self.counters.get("tokens.decoded")
        if decoded is None:
            return np.zeros(self.buckets, dtype=bool)
        seen = ~np.isnan(decoded.value)
        finished = [self.counters[name].value for name in ("requests.finished",) if name in self.counters]
        still = standstill(decoded.value, [*finished, *self.prefill], self.total("requests.queued"))
        running = sum_over(
            [
                rank.last["requests.running"]
                for rank in self.ranks.values()
                if "requests.running" in rank.last
            ],
            self.buckets,
        )
        return late_idle(still, observed & seen, decoded.scrapes, running, self.step_ms)

    def gauge(self, metric: str) -> Floats:
        """Return a gauge over ranks, each only where that rank was active (gauges freeze in idle).

        As the catalogue says: the mean of ratios and lengths; a setting only where all ranks agree.
        """
        active, _ = self.activity
        rows = [
            np.where(self._rank_active(rank, active), rank.mean[metric], np.nan)
            for rank in self.ranks.values()
            if metric in rank.mean
        ]
        return combine(rows, CATALOGUE[metric].across) if rows else np.full(self.buckets, np.nan)

    def shows(self, metric: str) -> bool:
        """Tell whether a gauge was observed while the engine was active."""
        return not bool(np.isnan(self.gauge(metric)).all())

    def first_of(self, metrics: Sequence[str]) -> Growth | None:
        """Return the first of these counters that is there."""
        return next((self.counters[metric] for metric in metrics if metric in self.counters), None)

    def grown(self, metric: str) -> float | None:
        """Return the growth of a counter over the window; None = not counted."""
        counter = self.counters.get(metric)
        return None if counter is None else counter.total

    @property
    def is_plain(self) -> bool:
        """Tell whether the launch is known to decode without speculation."""
        return is_plain(self.launch)

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
    metrics = (*COUNTERS, *DISTURBANCES, *PREFILL, *GAUGES)
    found = find_series(session, metrics=metrics, launch_ids=ids) if ids else []
    found = [ref for ref in found if ref.labels.get(LACKS) not in UNPAIRED]
    if rank is not None:
        found = [ref for ref in found if _is_of_rank(ref, rank)]
    chosen = {launch.id: target_series(session, launch, found) for launch in launches}
    used = [ref for refs, _ in chosen.values() for ref in refs]
    buckets = read_buckets(session, used, window) if used else {}
    newest = {
        key: time_ms
        for key, time_ms in newest_times(session, list(buckets)).items()
        if window.from_ms <= time_ms < window.to_ms
    }
    decided = log_definitions(session, ids)
    gathered = []
    for launch in launches:
        refs, note = chosen[launch.id]
        refs = [ref for ref in refs if ref.id in buckets]
        if any(ref.metric in (*COUNTERS, *GAUGES) for ref in refs):
            data = _launch_data(launch, _shape(session, launch, refs), buckets, newest, window)
            data.note, data.log_decision = note, decided.get(launch.id)
            gathered.append(data)
    return gathered


def target_series(
    session: Session, launch: Launch, found: Sequence[SeriesRef]
) -> tuple[list[SeriesRef], str]:
    """Return what `series_of_target` does, chosen in a pass only anew where the launch has other series."""
    own = tuple(ref.id for ref in found if ref.launch_id == launch.id)
    names = (launch.served_model_name, launch.model, launch.draft_model, launch.version_source)
    return made_of_series(session, ("target", names, own), launch.id, lambda: series_of_target(launch, found))


def series_of_target(launch: Launch, found: Sequence[SeriesRef]) -> tuple[list[SeriesRef], str]:
    """Return the series of the model that the launch serves, and what must be said about the choice."""
    names = target_names(launch.served_model_name, launch.model, launch.draft_model, launch.version_source)
    series = {ref.id: ref for ref in found if ref.launch_id == launch.id}
    chosen = of_target([(ref.id, ref.labels) for ref in series.values()], names)
    return [series[key] for key in chosen.kept], chosen.note


def _is_of_rank(ref: SeriesRef, rank: int) -> bool:
    of_scheduler = ref.metric in (*GAUGES, *PREFILL, *DRAFTS, *LIVE)
    return of_scheduler and rank_number(ref.labels, "dp_rank") == rank


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the labels of a launch's series say of each other."""

    kept: dict[str, list[SeriesRef]]
    """Metric → one series of each group of mirrors."""
    home: dict[int, tuple[Labels, int]]
    """Series id → (its scheduler, the data-parallel rank that it names)."""


def _shape(session: Session, launch: Launch, refs: Sequence[SeriesRef]) -> _Shape:
    own = tuple(ref.id for ref in refs)
    return made_of_series(session, ("shape", own), launch.id, lambda: _shape_of(refs))


def _shape_of(refs: Sequence[SeriesRef]) -> _Shape:
    by_metric: dict[str, list[SeriesRef]] = {}
    for ref in refs:
        by_metric.setdefault(ref.metric, []).append(ref)
    groups = {ref.id: mirror_group(ref.labels) for ref in refs if _is_of_scheduler(ref)}
    home = homes(groups.values())
    places = {
        ref.id: (home[groups[ref.id]], rank_number(ref.labels, "dp_rank")) for ref in refs if ref.id in groups
    }
    kept = {metric: leaders((ref, ref.labels) for ref in group) for metric, group in by_metric.items()}
    return _Shape(kept, places)


def _launch_data(
    launch: Launch, shape: _Shape, buckets: dict[int, Buckets], newest: dict[int, int], window: Window
) -> LaunchData:
    data = LaunchData(launch, window.buckets, {}, {}, {}, window.step_ms)
    for metric, kept in shape.kept.items():
        growth = _growth([buckets[ref.id] for ref in kept], window.buckets)
        if metric in DISTURBANCES:
            data.disturbances[metric] = growth.total
        elif metric in PREFILL:
            data.prefill.append(growth.value)
        else:
            data.newest_ms[metric] = max(_as_of(ref, buckets, newest, window) for ref in kept)
        if metric in COUNTERS:
            data.counters[metric] = growth
        if _is_of_scheduler(kept[0]):
            _add_to_ranks(data, metric, kept, buckets, shape)
    return data


def _is_of_scheduler(ref: SeriesRef) -> bool:
    return ref.metric in GAUGES or ref.metric == "tokens.decoded"


def _growth(parts: list[Buckets], buckets: int) -> Growth:
    if len(parts) == 1:
        return Growth(np.where(parts[0].n > 0, parts[0].sum, np.nan), parts[0].span_ms, parts[0].n)
    value = sum_over([np.where(part.n > 0, part.sum, np.nan) for part in parts], buckets)
    span_ms, scrapes = (
        np.max(arrays, axis=0) for arrays in ([part.span_ms for part in parts], [part.n for part in parts])
    )
    return Growth(value, span_ms, scrapes)


def _add_to_ranks(
    data: LaunchData,
    metric: str,
    kept: list[SeriesRef],
    buckets: dict[int, Buckets],
    shape: _Shape,
) -> None:
    # The source that tells more comes first: one that tells less of the same scheduler fills its gaps.
    for ref in sorted(kept, key=lambda ref: -len(ref.labels)):
        place, dp_rank = shape.home[ref.id]
        rank = data.ranks.setdefault(place, RankData(dp_rank))
        part = buckets[ref.id]
        mean = np.where(part.n > 0, part.sum / np.maximum(part.n, 1), np.nan)
        if metric == "tokens.decoded":
            grown = np.where(part.n > 0, part.sum, np.nan)
            rank.decoded = grown if rank.decoded is None else sum_over([rank.decoded, grown], data.buckets)
            continue
        for known, array in (
            (rank.mean, mean),
            (rank.last, part.last),
            (rank.low, part.min),
            (rank.high, part.max),
        ):
            known[metric] = _filled(known[metric], array) if metric in known else array


def _filled(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(first), second, first))


def _as_of(ref: SeriesRef, buckets: dict[int, Buckets], newest: dict[int, int], window: Window) -> int:
    """Return when the newest sample in the window was taken; exact when it is the series' newest of all."""
    if ref.id in newest:
        return newest[ref.id]
    last = int(np.flatnonzero(buckets[ref.id].n > 0)[-1])
    return min(window.from_ms + (last + 1) * window.step_ms, window.to_ms) - 1
