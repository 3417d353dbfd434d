"""One scrape of one target, from what was read to the batch that is stored. Pure but for its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from specscope_collectors.engine import InfoReading, LoadsReading
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.health import MAX_DETAIL, scrape_levels
from specscope_collectors.identity import Change, Evidence
from specscope_collectors.increments import MAX_REMEMBERED_SERIES, Advance, CounterMemory, advance
from specscope_collectors.launches import Known, Verdict, started_anew
from specscope_collectors.observations import Event, HealthState, Level, Observation, SourceHealth
from specscope_collectors.scrape import MetricsReading


@dataclass(frozen=True, slots=True)
class Committed:
    """State as of the last stored batch: nothing is remembered that was not stored."""

    sequence: int = 0
    memory: CounterMemory = field(default_factory=CounterMemory)
    known: Known | None = None


@dataclass(slots=True)
class Tick:
    """What one scrape has read so far."""

    metrics: MetricsReading
    plain: Advance | None = None
    """Growth if the process is the same as before; None when no value may be taken."""
    is_urgent: bool = False
    """The launch may be another one: nothing may be attributed before that is known."""
    info: InfoReading | None = None
    loads: LoadsReading | None = None

    @property
    def mapped(self) -> Mapped | None:
        """What ``/metrics`` holds, None when no value may be taken from it."""
        return self.metrics.mapped

    @property
    def time_ms(self) -> int:
        """When ``/metrics`` was read."""
        return self.metrics.health.time_ms

    def evidence(self, known: Known | None, *, gap: bool) -> Evidence:
        """Return what the metrics say about a restart."""
        anew = self.mapped is not None and started_anew(known, self.mapped)
        if self.plain is None:
            return Evidence(gap=gap, started_anew=anew)
        return Evidence(fell=self.plain.fell, compared=self.plain.compared, gap=gap, started_anew=anew)


def growth(
    tick: Tick, memory: CounterMemory, *, fresh_process: bool = False, down_ms: int | None = None
) -> Advance | None:
    """Return the growth since ``memory``; None when no value may be taken."""
    mapped = tick.mapped
    if mapped is None:
        return None
    return advance(
        memory,
        mapped.counters,
        mapped.histograms,
        tick.time_ms,
        fresh_process=fresh_process,
        down_ms=down_ms,
    )


def health_observations(tick: Tick, known: Known | None) -> list[Observation]:
    """Return health and ``scrape.*`` of every source that was asked."""
    metrics = tick.metrics.health
    if tick.mapped is not None:
        hints = tick.metrics.engine.missing(tick.mapped, known.launch if known else None)
        metrics = msgspec.structs.replace(metrics, missing=hints)
    if tick.plain is not None and tick.plain.refused:
        metrics = _with_forgotten(metrics, tick.plain.refused)
    asked = [metrics, *(reading.health for reading in (tick.info, tick.loads) if reading is not None)]
    counted = [health for health in asked if health.state is not HealthState.NOT_OFFERED]
    return [*asked, *(level for health in counted for level in scrape_levels(health))]


def _with_forgotten(health: SourceHealth, count: int) -> SourceHealth:
    """Say that growth of new series is not taken, since there is no room to remember them."""
    words = f"{count} new series refused: {MAX_REMEMBERED_SERIES} are remembered already"
    return msgspec.structs.replace(
        health,
        state=HealthState.PARTIAL,
        refused=health.refused + count,
        detail="; ".join(filter(None, (words, health.detail)))[:MAX_DETAIL],
        remedy=health.remedy or "find the label whose values never repeat, and drop it",
    )


def measurements(tick: Tick, verdict: Verdict, grown: Advance | None) -> list[Observation]:
    """Return launch, events, levels and growth, all of which belong to the launch of ``verdict``."""
    found: list[Observation] = []
    if verdict.change is not Change.SAME:
        found.append(verdict.known.launch)
    if verdict.event is not None:
        found.append(verdict.event)
    if tick.mapped is not None:
        found += _levels(tick.mapped, tick.time_ms)
    if tick.loads is not None:
        found += tick.loads.levels
    if grown is not None:
        found += [*grown.increments, *grown.distributions, *_clock_events(grown, tick.time_ms)]
    return found


def metrics_of(tick: Tick) -> frozenset[str]:
    """Return the canonical metrics that this scrape gave."""
    found = {level.metric for level in tick.loads.levels} if tick.loads is not None else set()
    if tick.mapped is not None:
        mapped = (tick.mapped.levels, tick.mapped.counters, tick.mapped.histograms)
        found.update(metric for group in mapped for metric, _ in group)
    return frozenset(found)


def _levels(mapped: Mapped, time_ms: int) -> list[Level]:
    return [
        Level(metric=metric, labels=dict(labels), time_ms=time_ms, value=value)
        for (metric, labels), value in mapped.levels.items()
    ]


def _clock_events(grown: Advance, time_ms: int) -> list[Event]:
    if not grown.clock_went_back:
        return []
    message = "the collector's clock went back; growth is reported with the next scrape"
    return [Event(kind="clock_jump", time_ms=time_ms, message=message)]
