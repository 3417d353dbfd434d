"""Turn the arrays of a window into the few results that the summary words: counts, ratios, rates (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from specscope_server.acceptance.counts import (
    arrays,
    constant_draft_tokens,
    counts_drafts,
    made_cycles,
    totals,
)
from specscope_server.acceptance.engine_rates import VLLM_DECISION, Decision, decide
from specscope_server.acceptance.gather import CYCLES, LaunchData
from specscope_server.acceptance.requests import RequestSums
from specscope_server.acceptance.schemas import Evidence
from specscope_server.acceptance.statistics import (
    Flags,
    Floats,
    Ratio,
    bootstrapped_ratio,
    pooled,
    strict_acceptance,
    sum_over,
    time_weighted,
)
from specscope_server.kit.timerange import Window

REQUESTS_COVER = 0.5
"""Share of the counted cycles that request records must cover before they are preferred to the counters."""


@dataclass(frozen=True, slots=True)
class CounterCounts:
    """Sums over launches; None = not counted by every launch that made cycles."""

    calls: float
    tokens: float | None
    requests: float | None
    accepted: float | None
    proposed: float | None


@dataclass
class Measured:
    """What a window holds. The launches are in order of their start."""

    window: Window
    launches: Sequence[LaunchData]
    requests: RequestSums | None

    @cached_property
    def evidence(self) -> Evidence:
        """Return the best evidence present."""
        calls = self.counters.calls
        if calls > 0 and self.counters.accepted is not None and all(map(counts_drafts, self.counted)):
            return Evidence.DRAFT_COUNTERS
        if self.requests and self.requests.cycles >= REQUESTS_COVER * calls:
            return Evidence.REQUEST_HISTOGRAMS
        if calls > 0 and self.counters.accepted is not None:
            return Evidence.COUNTERS
        return Evidence.GAUGES if self.gauge_length[1] else Evidence.NONE

    @cached_property
    def counted(self) -> list[LaunchData]:
        """Return the launches that counted cycles in the window."""
        return [data for data in self.launches if made_cycles(data)]

    @cached_property
    def uncounted(self) -> int:
        """Return how many launches printed an accept length but counted no cycles."""
        return sum(data.shows("spec.accept_length") for data in self.launches if not made_cycles(data))

    @cached_property
    def counters(self) -> CounterCounts:
        """Return the counts behind the counters, summed over launches."""
        found = [totals(data) for data in self.counted]
        tokens, requests = (
            _sum_if_known([getattr(one, name) for one in found]) for name in ("tokens", "requests")
        )
        return CounterCounts(
            sum(one.cycles for one in found),
            tokens,
            requests,
            _sum_if_known([one.accepted for one in found]),
            _sum_if_known([one.proposed for one in found]),
        )

    @cached_property
    def counter_length(self) -> Ratio:
        """Return τ from counters with its interval."""
        y, x, _ = self.counter_arrays
        if self.counters.accepted is None or not self.counters.calls:
            return Ratio(None)
        interval = bootstrapped_ratio(y, x)
        return replace(interval, value=self.counters.accepted / self.counters.calls).shifted(1.0)

    @cached_property
    def counter_strict(self) -> Ratio:
        """Return strict acceptance from counters; None without proposed drafts."""
        y, _, p = self.counter_arrays
        if self.counters.accepted is None or not self.counters.proposed:
            return Ratio(None)
        return replace(bootstrapped_ratio(y, p), value=self.counters.accepted / self.counters.proposed)

    @cached_property
    def counter_arrays(self) -> tuple[Floats, Floats, Floats]:
        """Return per bucket, summed over launches: accepted drafts, cycles, proposed drafts."""
        found = [one for data in self.launches if (one := arrays(data)) is not None]
        size = self.window.buckets
        known = sum_over([one.proposed for one in found], size)
        for one in found:
            known[(one.cycles > 0) & np.isnan(one.proposed)] = np.nan  # the others' drafts are not all drafts
        accepted = sum_over([one.accepted for one in found], size)
        return accepted, sum_over([one.cycles for one in found], size), known

    @cached_property
    def gauge_length(self) -> tuple[float | None, int]:
        """Return (time-weighted mean of the engine's τ over active buckets, how many)."""
        return _pooled_gauge("spec.accept_length", self.launches)

    @cached_property
    def counted_gauge_length(self) -> tuple[float | None, int]:
        """Return the same over those launches only that also counted verify calls."""
        return _pooled_gauge("spec.accept_length", self.counted)

    @cached_property
    def gauge_strict(self) -> float | None:
        """Return (τ − 1)/(D − 1) of the gauges, weighted by active time; None if any D is unknown."""
        shares = []
        for data in self.launches:
            value, n = time_weighted(data.gauge("spec.accept_length"), data.activity[0])
            if value is None:
                continue
            draft_tokens = constant_draft_tokens(data) or inferred_draft_tokens(data)
            share = None if draft_tokens is None else strict_acceptance(value, draft_tokens)
            if share is None:
                return None
            shares.append((share, n))
        return pooled(shares)[0]

    @cached_property
    def activity(self) -> tuple[Flags, Flags]:
        """Return (active, idle) per bucket over all launches."""
        active = np.zeros(self.window.buckets, dtype=bool)
        idle = np.zeros(self.window.buckets, dtype=bool)
        for data in self.launches:
            a, i = data.activity
            active |= a
            idle |= i
        return active, idle & ~active

    @property
    def ends_idle(self) -> bool:
        """Tell whether the last observed bucket is idle."""
        active, idle = self.activity
        observed = np.flatnonzero(active | idle)
        return bool(len(observed) and idle[observed[-1]])

    def rate_per_second(self, *metrics: str) -> tuple[float | None, float]:
        """Return (growth per second of active time, growth) over launches, of the first that each counts."""
        grown, span_ms = 0.0, 0
        for data in self.launches:
            metric = next((metric for metric in metrics if metric in data.counters), "")
            counter = data.counters.get(metric)
            if counter is not None and not (metric in CYCLES and data.is_plain):
                active = data.activity[0]
                grown += float(np.nansum(counter.value[active]))
                span_ms += int(counter.span_ms[active].sum())
        return (grown / (span_ms / 1_000), grown) if span_ms > 0 else (None, grown)

    def throughput_gauge(self) -> tuple[float | None, int]:
        """Return (time-weighted sum over ranks of the engine's tokens per second while active, samples)."""
        return pooled(
            time_weighted(data.total("throughput.generated"), data.activity[0]) for data in self.launches
        )

    def newest_ms(self, *metrics: str) -> int | None:
        """Return when the newest sample of any of these metrics was taken."""
        times = [
            data.newest_ms[metric] for data in self.launches for metric in metrics if metric in data.newest_ms
        ]
        return max(times, default=None)

    @cached_property
    def rate_launch(self) -> LaunchData | None:
        """Return the newest launch with a rate that was printed while active."""
        for data in reversed(self.launches):
            if data.shows("spec.engine_accept_rate"):
                return data
        return None

    @cached_property
    def rate_decision(self) -> Decision | None:
        """Return the definition of the printed rate of `rate_launch`."""
        return None if self.rate_launch is None else decision_for(self.rate_launch)


def decision_for(data: LaunchData) -> Decision:
    """Return the definition of the rate that this launch printed."""
    if data.launch.engine == "vllm":
        return VLLM_DECISION
    found = decide(
        data.launch.engine_version,
        data.gauge("spec.accept_length"),
        data.gauge("spec.engine_accept_rate"),
        constant_draft_tokens(data),
        data.launch.version_source,
    )
    is_open = found.formula is None and not found.contradicts
    return data.log_decision if is_open and data.log_decision is not None else found


def inferred_draft_tokens(data: LaunchData) -> int | None:
    """Return D where nobody told it and the printed pairs of τ and rate leave only one."""
    return None if data.launch.adaptive else decision_for(data).draft_tokens


def last_total(data: LaunchData, metric: str) -> float | None:
    """Return the newest value of a gauge, summed over the ranks seen in the last observed bucket."""
    rows = [rank.last[metric] for rank in data.ranks.values() if metric in rank.last]
    total = sum_over(rows, data.buckets)
    seen = np.flatnonzero(~np.isnan(total))
    return float(total[seen[-1]]) if len(seen) else None


def last_same(data: LaunchData, metric: str) -> float | None:
    """Return the newest positive value of a configuration gauge; None when ranks disagree or are silent."""
    values = set()
    for rank in data.ranks.values():
        array = rank.last.get(metric, np.empty(0))
        seen = array[np.nan_to_num(array) > 0]
        if len(seen):
            values.add(float(seen[-1]))
    return values.pop() if len(values) == 1 else None


def _pooled_gauge(metric: str, launches: Sequence[LaunchData]) -> tuple[float | None, int]:
    return pooled(time_weighted(data.gauge(metric), data.activity[0]) for data in launches)


def _sum_if_known(values: Sequence[float | None]) -> float | None:
    """Return the sum; None if any value is not known, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
