"""A history as an API would give it, and readings of it that are stopped at one stored batch."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.collectors.prometheus.recorded import EVERY_MS, LABELS, Scraped, stored_by_prometheus
from tests.collectors.runner.engine import Engine, MemorySink, StoreDownError

from specscope_collectors.observations import Batch, Sink, SourceHealth, Target
from specscope_collectors.sources.prometheus.answers import RawSeries
from specscope_collectors.sources.prometheus.history import History
from specscope_collectors.sources.prometheus.segment import LOOKBACK_MS, Reading
from specscope_collectors.threads import in_thread

BEGIN_MS = 1_800_000_000_000
_SAMPLE = re.compile(r"^([a-zA-Z_:]+)\{(.*)\} (\S+) (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"')


class StoredApi:
    """What a Prometheus answers that holds these scrapes, without one: a reading takes milliseconds."""

    url = "http://prometheus:9090"
    last = None

    def __init__(self, scraped: Iterable[Scraped]) -> None:
        self._series: dict[tuple[tuple[str, str], ...], list[tuple[float, str]]] = {}
        for line in stored_by_prometheus(scraped, LABELS):
            found = _SAMPLE.match(line)
            assert found, line
            labels = (("__name__", found[1]), *_LABEL.findall(found[2]))
            self._series.setdefault(labels, []).append((float(found[4]), found[3]))

    async def raw(self, selector: str, from_ms: int, to_ms: int) -> list[RawSeries]:
        """Return the samples of (from, to]."""
        return self._cut(lambda values: [each for each in values if from_ms < each[0] * 1000 <= to_ms])

    async def grid(self, selector: str, from_ms: int, to_ms: int, step_ms: int) -> list[RawSeries]:
        """Return the newest value at each point of the grid."""

        def at_points(values: list[tuple[float, str]]) -> list[tuple[float, str]]:
            points = []
            for point_ms in range(from_ms, to_ms + 1, step_ms):
                seen = [text for at, text in values if point_ms - LOOKBACK_MS < at * 1000 <= point_ms]
                points += [(point_ms / 1000, seen[-1])] if seen else []
            return points

        return self._cut(at_points)

    def _cut(self, cut: Callable[[list[tuple[float, str]]], list[tuple[float, str]]]) -> list[RawSeries]:
        found = ((labels, cut(values)) for labels, values in self._series.items())
        return [RawSeries(dict(labels), values) for labels, values in found if values]


@dataclass
class StoppingSink:
    """Stores in memory; at batch number ``stop_at`` (from 1 on, once) ``stop(store)`` happens instead."""

    stop_at: int
    stop: Callable[[Callable[[], bool]], bool]
    kept: MemorySink = field(default_factory=MemorySink)
    count: int = 0

    def resume(self, collector_id: str) -> Any:
        """Return what is stored."""
        return self.kept.resume(collector_id)

    def apply(self, batch: Batch) -> bool:
        """Store a batch, or stop."""
        self.count += 1
        if self.count == self.stop_at:
            return self.stop(lambda: self.kept.apply(batch))
        return self.kept.apply(batch)


def killed(store: Callable[[], bool]) -> bool:
    """Store, and end before anybody hears of it."""
    store()
    raise StoreDownError("killed")


def failing(store: Callable[[], bool]) -> bool:
    """Do not store."""
    raise StoreDownError("down")


@dataclass(frozen=True)
class Span:
    """What is asked for; times after `BEGIN_MS`."""

    since_ms: int
    until_ms: int
    raw_ms: int
    step_ms: int = 60_000


def opened(api: StoredApi, sink: Sink, span: Span) -> History:
    """Return a history as a process that begins now has it."""
    reading = Reading(
        api=api,  # type: ignore[arg-type]
        target=Target(name="gpu1:30000", base_url=api.url),
        selector="{}",
        raw_ms=span.raw_ms,
        step_ms=span.step_ms,
        in_thread=in_thread,
    )
    history = History(reading, sink, max_series=1_000)
    history.open(BEGIN_MS + span.since_ms)
    return history


async def read_on(history: History, span: Span) -> None:
    """Read to the end."""
    until_ms = BEGIN_MS + span.until_ms
    while not await history.advance(until_ms, until_ms + 30_000):
        pass


def stored(sink: MemorySink) -> list[tuple[Any, ...]]:
    """Return everything that was stored but health, each with its launch, in the order of its series."""
    rows = [
        (type(each).__name__, repr(each), batch.launch_key)
        for batch in sink.batches
        for each in batch.observations
        if not isinstance(each, SourceHealth)
    ]
    return sorted(rows)


def run(history: History, span: Span) -> None:
    """Read to the end on a loop of its own."""
    asyncio.run(read_on(history, span))


def eventful() -> list[Scraped]:
    """Return the scrapes of an engine to which everything happens that makes values wait or counters fall."""
    made = _Made()
    one, two = Engine(tokens=90_000, verify_calls=40), Engine(tokens=300, verify_calls=5_000)
    made.serve(one, 6)
    one.restart(tokens=2_000, verify_calls=400)  # between two scrapes: waits, and one counter is higher
    made.serve(one, 8)
    made.away(4)
    one.restart()
    made.serve(one, 45)
    for turn in range(7):  # a load balancer
        made.serve((one, two)[turn % 2], 1)
    made.serve(two, 16)
    made.at_ms += 200_000
    made.serve(two, 4)
    two.restart()  # a second fall within minutes
    made.serve(two, 16)
    one.model = "another"
    made.serve(one, 5)
    return made.scraped


@dataclass
class _Made:
    scraped: list[Scraped] = field(default_factory=list)
    at_ms: int = BEGIN_MS

    def serve(self, engine: Engine, times: int) -> None:
        for count in range(times):
            engine.serve(tokens=100 + 7 * count, verify_calls=40 + count)
            self._add(engine.metrics().decode())

    def away(self, times: int) -> None:
        for _ in range(times):
            self._add(None)

    def _add(self, body: str | None) -> None:
        self.at_ms += EVERY_MS
        self.scraped.append((self.at_ms, body))
