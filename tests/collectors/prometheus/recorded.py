"""One night of a demo engine, seen twice: by a scrape of our own, and by a Prometheus with the same times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.collectors.fetch.servers import Request, reset, response, serving
from tests.collectors.runner.engine import FakeClock, MemorySink
from tests.support.prometheus import with_labels

from specscope_collectors.board import Board
from specscope_collectors.clock import system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.fetch import make_client
from specscope_collectors.job import JobContext
from specscope_collectors.observations import Distribution, Increment, Level, Sink, Target
from specscope_collectors.sources.prometheus.job import Config, build
from specscope_collectors.target import TargetCollector
from specscope_server.demo.player import Player
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS

INSTANCE = "gpu1:30000"
LABELS = {"instance": INSTANCE, "job": "sglang", "cluster": "a", "zone": "z1"}
EVERY_MS = 15_000

Scraped = tuple[int, str | None]
"""(time, body of ``/metrics`` or None while the engine is away)."""


def night(
    seconds: int,
    *,
    hours_ago: float = 6.0,
    every_ms: int = EVERY_MS,
    speed: float = 10.0,
    version: str = "0.5.23",
) -> list[Scraped]:
    """Return what the demo engine says at each time; a Prometheus has its own clock, hence ``hours_ago``."""
    begin_ms = (system_clock() - int(hours_ago * 3_600_000)) // 60_000 * 60_000 + 123
    subject = Player(VERSIONS[version], Story(speed), 7, "Kimi-K2.5", begin_ms, pid=100)
    found: list[Scraped] = []
    for time_ms in range(begin_ms, begin_ms + seconds * 1000, every_ms):
        subject.advance(time_ms)
        found.append((time_ms, subject.metrics(subject.current) if subject.current else None))
    return found


def stored_by_prometheus(scraped: Iterable[Scraped], labels: dict[str, str] = LABELS) -> Iterator[str]:
    """Yield the samples that a Prometheus stores of these scrapes."""
    for time_ms, body in scraped:
        if body is not None:
            yield from with_labels(body, time_ms, labels)
        yield from with_labels(f"up {int(body is not None)}", time_ms, labels)


def scraped_by_us(scraped: list[Scraped]) -> MemorySink:
    """Return what our own scrape of the same engine at the same times stores."""
    clock, sink, now = FakeClock(), MemorySink(), {"body": b""}

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        if not now["body"]:
            await reset(request, writer)
            return
        missing = request.path != "/metrics"
        writer.write(response(b"", "404 Not Found") if missing else response(now["body"]))
        await writer.drain()

    async def scrape_all(url: str) -> None:
        options = CollectorOptions()
        async with make_client(options, with_tls=False) as client:
            collector = TargetCollector(
                Target(name=INSTANCE, base_url=url), sink, options, client,
                clock=clock, monotonic=lambda: clock.now_ms / 1000,
            )  # fmt: skip
            for time_ms, body in scraped:
                clock.now_ms, now["body"] = time_ms, (body or "").encode()
                await collector.scrape()

    with serving(answer) as server:
        asyncio.run(scrape_all(f"http://127.0.0.1:{server.port}"))
    return sink


def measured(sink: MemorySink) -> dict[tuple[Any, ...], Any]:
    """Return (kind, metric, labels, time) → value and span of everything about the engine."""
    found: dict[tuple[Any, ...], Any] = {}
    for batch in sink.batches:
        for each in batch.observations:
            if isinstance(each, Increment | Level | Distribution) and not each.metric.startswith("scrape."):
                key = (type(each).__name__, each.metric, tuple(sorted(each.labels.items())), each.time_ms)
                assert key not in found, f"{key} was stored twice"
                found[key] = _value(each)
    return found


def _value(each: Increment | Level | Distribution) -> Any:
    if isinstance(each, Level):
        return each.value
    if isinstance(each, Increment):
        return each.value, each.span_ms
    return each.bounds, each.buckets, each.count, each.sum, each.span_ms


def sums(sink: MemorySink) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return (metric, labels) → growth of each counter over everything."""
    total: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for each in sink.all(Increment):
        key = (each.metric, tuple(sorted(each.labels.items())))
        total[key] = total.get(key, 0.0) + each.value
    return total


def read(
    sink: Sink,
    config: Config,
    *,
    board: Board | None = None,
    steps: int = 1_000,
    after_step: Callable[[int, float], None] = lambda count, wait: None,
    tolerated: type[Exception] | tuple[()] = (),
) -> int:
    """Step a new job until there is nothing to do now; return the number of steps.

    A step that raises what is ``tolerated`` is tried again, as the runner of jobs does.
    """

    async def go(pool: ThreadPoolExecutor) -> int:
        context = JobContext(
            sink=sink,
            options=CollectorOptions(),
            clock=system_clock,
            monotonic=time.monotonic,
            pool=pool,
            board=board or Board(),
        )
        (job,) = build(config, context)
        try:
            for count in range(1, steps + 1):
                try:
                    wait = await job.step()
                except tolerated:
                    continue
                after_step(count, wait)
                if wait > 0:
                    return count
        finally:
            await job.close()
        return steps

    with ThreadPoolExecutor(2) as pool:
        return asyncio.run(go(pool))
