"""Runs the collectors of all targets on a thread of their own; no target waits for another."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import structlog

from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.fetch import make_client
from specscope_collectors.observations import Sink, Target
from specscope_collectors.target import TargetCollector

log = structlog.get_logger("specscope.collector")

WORKERS = 4
"""Threads that parse and store; several, so that a slow store does not stop the parsing."""


class Lanes:
    """Limits how many targets are scraped at once.

    Targets that hang hold their place until the deadline, so they queue in a lane of their own and never keep
    the others waiting.
    """

    def __init__(self, concurrency: int) -> None:
        self._fast = asyncio.Semaphore(concurrency)
        self._slow = asyncio.Semaphore(max(1, concurrency // 4))

    @contextlib.asynccontextmanager
    async def place(self, collector: TargetCollector) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        async with self._slow if collector.was_slow else self._fast:
            yield


class Runner:
    """Starts and stops the collection from ``targets`` into ``sink``."""

    def __init__(
        self,
        targets: Sequence[Target],
        sink: Sink,
        options: CollectorOptions,
        clock: Clock = system_clock,
    ) -> None:
        self._targets = list(targets)
        self._sink = sink
        self._options = options
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Task[None] | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        """Begin scraping in the background; returns at once. Raises RuntimeError when already started."""
        if self._thread is not None:
            raise RuntimeError("this runner is already started")
        self._thread = threading.Thread(target=self._run, name="specscope-collectors", daemon=True)
        self._thread.start()
        self._ready.wait()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Cancel what is in flight and wait for the thread; a batch being stored is finished."""
        thread, loop, work = self._thread, self._loop, self._work
        if thread is None:
            return
        if loop is not None and work is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(work.cancel)
        thread.join(timeout_seconds)
        self._thread = None

    @property
    def is_running(self) -> bool:
        """True between `start` and `stop`, as long as the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    def scrape_once(self) -> None:
        """Scrape every target once, in this thread, and return when all outcomes are stored."""

        async def once() -> None:
            async with self._collectors() as collectors:
                await asyncio.gather(*(collector.scrape() for collector in collectors))

        asyncio.run(once())

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            log.info("collectors stopped")
        except Exception as error:  # a bug: say so, since nobody else would notice
            log.error("collectors ended", error=repr(error))
            raise
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._work = asyncio.get_running_loop(), asyncio.current_task()
        self._ready.set()
        lanes = Lanes(self._options.concurrency)
        async with self._collectors() as collectors, asyncio.TaskGroup() as group:
            for at, collector in enumerate(collectors):
                group.create_task(self._repeat(collector, lanes, self._first_wait(at, len(collectors))))

    def _first_wait(self, at: int, count: int) -> float:
        """Seconds until the first scrape: spread over the targets, with some chance in it."""
        spread = self._options.scrape_interval_seconds * self._options.jitter_share
        return spread * (at + random.random()) / max(count, 1)  # noqa: S311 (no secret)

    async def _repeat(self, collector: TargetCollector, lanes: Lanes, first_wait_seconds: float) -> None:
        """Scrape at a steady cadence; what a slow scrape missed is left out, not made up for."""
        interval = self._options.scrape_interval_seconds
        due = time.monotonic() + first_wait_seconds
        told = ""
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            try:
                async with lanes.place(collector):
                    await collector.scrape()
            except Exception as error:  # a bug in one collector must not end the others
                if repr(error) != told:
                    told = repr(error)
                    log.error("scrape failed", target=collector.target.name, error=told)
            missed = max(0.0, (time.monotonic() - due) // interval)
            due += interval * (1 + missed)

    @contextlib.asynccontextmanager
    async def _collectors(self) -> AsyncIterator[list[TargetCollector]]:
        """Open one client per target, so that no connections are shared, and a pool of workers."""
        loop = asyncio.get_running_loop()
        # name look-ups run here; a resolver that hangs must not starve the other targets
        loop.set_default_executor(ThreadPoolExecutor(8 + 2 * len(self._targets), "specscope-lookup"))
        pool = ThreadPoolExecutor(WORKERS, "specscope-work")
        try:
            async with contextlib.AsyncExitStack() as stack:
                clients = [await stack.enter_async_context(self._client(target)) for target in self._targets]
                yield [
                    TargetCollector(target, self._sink, self._options, client, clock=self._clock, pool=pool)
                    for target, client in zip(self._targets, clients, strict=True)
                ]
        finally:
            pool.shutdown(wait=True)

    def _client(self, target: Target) -> httpx.AsyncClient:
        return make_client(self._options, with_tls=target.base_url.startswith("https:"))
