"""Cumulative counters and histograms of one target → growth per interval, with resets handled.

Pure: nothing here reads a clock or a socket. `advance` takes what was remembered and what was just read,
and returns the growth and what to remember next. Calling it twice with the same arguments gives the same
answer, so a caller may look at a result (`Advance.all_fell`), decide that the process was restarted, and call
again with ``fresh_process=True``.

Rules:

* the first good scrape of a target is a baseline: growth before it has no known span and is not reported;
* a series that appears later grew from 0 since the last good scrape (engines create a label set when they
  first write it);
* a value that fell was reset: it grew from 0, over the span since it was last seen;
* a lost scrape only widens the next span; a series that is missing keeps its baseline;
* no growth is reported as 0: observed zero is not missing;
* a clock that stood still or went back gives no growth now: the old values stay the baseline, only their
  times are set to the new clock, so the next scrape reports the whole growth (over a span that is short by
  the jump).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from specscope_collectors.counter_memory import (
    CheckpointError,
    CounterMemory,
    HistogramState,
    LabelPairs,
    SeriesKey,
)
from specscope_collectors.observations import Distribution, Increment

__all__ = [
    "MAX_REMEMBERED_SERIES",
    "ROUNDING",
    "Advance",
    "CheckpointError",
    "CounterMemory",
    "HistogramState",
    "LabelPairs",
    "SeriesKey",
    "advance",
]

MAX_REMEMBERED_SERIES = 200_000
"""Series remembered per target. A target whose label values never repeat would otherwise fill the memory."""

SOON_FULL = frozenset({"time.warm_up", "time.warm_up_cycles"})
"""Counters that reach their end right after a start: a new process shows the old value again at once."""
ROUNDING = 1e-9
"""Relative fall that is rounding: engines add floats of several processes in an order that may change."""


@dataclass(frozen=True, slots=True)
class Advance:
    """What one scrape added."""

    increments: list[Increment]
    distributions: list[Distribution]
    memory: CounterMemory
    """Pass this to the next call, whatever else the result says."""
    fell: int = 0
    """Counters that were above 0 before and are lower now."""
    compared: int = 0
    """Counters that were above 0 before and were read now."""
    clock_went_back: bool = False
    """``time_ms`` is not after the last scrape: no growth is reported now, the next scrape reports it all."""
    refused: int = 0
    """New series that were not taken because `MAX_REMEMBERED_SERIES` is reached."""

    @property
    def all_fell(self) -> bool:
        """True when every counter that was above 0 and was read again has fallen: the process restarted."""
        return self.compared > 0 and self.fell == self.compared


def advance(
    memory: CounterMemory,
    counters: Mapping[SeriesKey, float],
    histograms: Mapping[SeriesKey, HistogramState],
    time_ms: int,
    *,
    fresh_process: bool = False,
    down_ms: int | None = None,
) -> Advance:
    """Return the growth since ``memory`` and the memory to keep.

    ``counters`` are cumulative values ≥ 0, ``time_ms`` is the epoch time of the scrape. ``fresh_process``
    says that the process restarted since the last good scrape: every series then grew from 0, and not before
    ``down_ms``, the last time (if any) at which nothing served there.
    """
    start = memory.forgotten(down_ms) if fresh_process else memory
    known = memory.counters
    fell, compared = falls((key, known[key][0], now) for key, now in counters.items() if key in known)
    if start.scraped_ms is not None and time_ms <= start.scraped_ms:
        return Advance([], [], start.rebased(time_ms), fell, compared, clock_went_back=True)
    step = _Step(start, time_ms)
    for key, value in counters.items():
        step.counter(key, value)
    for key, state in histograms.items():
        step.histogram(key, state)
    return Advance(step.increments, step.distributions, step.memory(), fell, compared, refused=step.refused)


@dataclass(slots=True)
class _Step:
    """One call of `advance` in progress."""

    before: CounterMemory
    time_ms: int
    increments: list[Increment] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    refused: int = 0
    counters: dict[SeriesKey, tuple[float, int]] = field(init=False)
    histograms: dict[SeriesKey, tuple[HistogramState, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.counters = dict(self.before.counters)
        self.histograms = dict(self.before.histograms)

    def counter(self, key: SeriesKey, value: float) -> None:
        last = self.before.counters.get(key)
        if last is None and self._is_full():
            return
        growth, baseline = (value, value) if last is None else counter_growth(last[0], value)
        self.counters[key] = (baseline, self.time_ms)
        span_ms = self._span_ms(last[1] if last else None)
        if span_ms is not None:
            metric, labels = key
            self.increments.append(
                Increment(
                    metric=metric, labels=dict(labels), time_ms=self.time_ms, span_ms=span_ms, value=growth
                )
            )

    def histogram(self, key: SeriesKey, state: HistogramState) -> None:
        last = self.before.histograms.get(key)
        if last is None and self._is_full():
            return
        growth = state if last is None else histogram_growth(last[0], state)
        self.histograms[key] = (state, self.time_ms)
        span_ms = self._span_ms(last[1] if last else None)
        if span_ms is not None:
            metric, labels = key
            self.distributions.append(
                Distribution(
                    metric=metric,
                    labels=dict(labels),
                    time_ms=self.time_ms,
                    span_ms=span_ms,
                    bounds=growth.bounds,
                    buckets=growth.buckets,
                    count=growth.count,
                    sum=growth.sum,
                )
            )

    def memory(self) -> CounterMemory:
        return CounterMemory(self.time_ms, self.counters, self.histograms)

    def _span_ms(self, seen_ms: int | None) -> int | None:
        """Time since this series (else this target) was last read; None on the very first scrape."""
        since_ms = self.before.scraped_ms if seen_ms is None else seen_ms
        return None if since_ms is None else self.time_ms - since_ms

    def _is_full(self) -> bool:
        if len(self.counters) + len(self.histograms) < MAX_REMEMBERED_SERIES:
            return False
        self.refused += 1
        return True


def counter_growth(before: float, now: float) -> tuple[float, float]:
    """Return (growth, new baseline) of a counter; a fall within rounding keeps the baseline."""
    if now >= before:
        return now - before, now
    if now >= before * (1 - ROUNDING):
        return 0.0, before
    return now, now


def histogram_growth(before: HistogramState, now: HistogramState) -> HistogramState:
    """Return what was added to a histogram; the whole of ``now`` if it was reset or has other bounds."""
    if before.bounds != now.bounds or _histogram_fell(before, now):
        return now
    return HistogramState(
        now.bounds,
        tuple(new - old for new, old in zip(now.buckets, before.buckets, strict=True)),
        now.count - before.count,
        max(now.sum - before.sum, 0.0),
    )


def _histogram_fell(before: HistogramState, now: HistogramState) -> bool:
    if now.count < before.count or now.sum < before.sum * (1 - ROUNDING):
        return True
    return any(new < old for new, old in zip(now.buckets, before.buckets, strict=True))


def falls(pairs: Iterable[tuple[SeriesKey, float, float]]) -> tuple[int, int]:
    """Return (fell, compared) over counters, each (key, value before, value now), that were above 0 before.

    Those of `SOON_FULL` say nothing about a restart.
    """
    fell = compared = 0
    for key, before, now in pairs:
        if before > 0 and key[0] not in SOON_FULL:
            compared += 1
            fell += now < before * (1 - ROUNDING)
    return fell, compared
