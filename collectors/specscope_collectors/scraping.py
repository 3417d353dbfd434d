"""Scrapes one target at a steady cadence until it is told to stop, and says when it is watched no more."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator
from concurrent.futures import Executor

import structlog

from specscope_collectors.board import Board
from specscope_collectors.clock import Clock
from specscope_collectors.draining import Draining
from specscope_collectors.engines import engine_named
from specscope_collectors.fetch import make_client
from specscope_collectors.labelled import labelled
from specscope_collectors.observations import Batch, HealthState, Sink, SourceHealth
from specscope_collectors.plan import Watching
from specscope_collectors.scrape import PATH
from specscope_collectors.target import TargetCollector

DRAIN_SECONDS = 5.0
"""For which a batch that is being stored may hold up a stop."""

log = structlog.get_logger("specscope.collector")


class Lanes:
    """Limits how many targets are scraped at once.

    Targets that hang hold their place until the deadline, so they queue in a lane of their own and never keep
    the others waiting.
    """

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self._fast = asyncio.Semaphore(concurrency)
        self._slow = asyncio.Semaphore(max(1, concurrency // 4))

    @contextlib.asynccontextmanager
    async def place(self, collector: TargetCollector) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        async with self._slow if collector.was_slow else self._fast:
            yield


class Scraping:
    """How all targets of one process are scraped; used on one event loop."""

    def __init__(self, sink: Sink, clock: Clock, board: Board, pool: Executor, concurrency: int) -> None:
        self.lanes = Lanes(concurrency)
        self._sink = sink
        self._clock = clock
        self._board = board
        self.pool = pool

    def use_lanes(self, concurrency: int) -> None:
        """Scrape so many targets at once, from the next scrape of each."""
        self.lanes = Lanes(concurrency)

    @contextlib.asynccontextmanager
    async def collector(self, watching: Watching) -> AsyncIterator[TargetCollector]:
        """Open a collector with a client of its own, so that no connections are shared.

        It ends when what was being stored is stored: whoever goes on with the target then finds all of it.
        """
        options, target = watching.options, watching.target
        pool = Draining(self.pool)
        async with make_client(options, with_tls=target.base_url.startswith("https:")) as client:
            try:
                yield TargetCollector(
                    target,
                    labelled(self._sink, watching.labels),
                    options,
                    client,
                    clock=self._clock,
                    pool=pool,
                    board=self._board,
                )
            finally:
                await pool.drain(DRAIN_SECONDS)

    async def keep(self, watching: Watching, place: float) -> None:
        """Scrape until cancelled; ``place`` in [0, 1) spreads the first scrapes of targets begun at once."""
        options = watching.options
        spread = options.scrape_interval_seconds * options.jitter_share
        first_wait = spread * (place + random.random() * (1 - place))  # noqa: S311 (no secret)
        async with self.collector(watching) as collector:
            await self._repeat(collector, options.scrape_interval_seconds, first_wait)

    async def _repeat(self, collector: TargetCollector, interval: float, first_wait_seconds: float) -> None:
        """Scrape at a steady cadence; what a slow scrape missed is left out, not made up for."""
        due = time.monotonic() + first_wait_seconds
        told = ""
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            try:
                async with self.lanes.place(collector):
                    await collector.scrape()
            except Exception as error:  # a bug in one collector must not end the others
                if repr(error) != told:
                    told = repr(error)
                    log.error("scrape failed", target=collector.target.name, error=told)
            missed = max(0.0, (time.monotonic() - due) // interval)
            due += interval * (1 + missed)

    async def farewell(self, watching: Watching) -> None:
        """Say that nobody asks this target any more: it is gone, and not unreachable for ever."""
        known = self._board.look(watching.target.name)
        source = engine_named(known.launch.engine if known else None).source
        known = self._board.look(watching.target.name)
        source = engine_named(known.launch.engine if known else None).source
        self._board.forget(watching.target.name)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.pool, self._store_gone, watching, source)
        log.info("target gone", target=watching.target.name, origin=watching.origin)

    def _store_gone(self, watching: Watching, source: str) -> None:
        target = watching.target
        collector_id = f"watch:{target.name}@{target.base_url}"
        health = SourceHealth(
            source=source,
            time_ms=self._clock(),
            state=HealthState.GONE,
            url=target.base_url + PATH,
            duration_seconds=0.0,
            detail=f"no longer listed by {watching.origin or 'who listed it'}"[:500],
            remedy="nothing to do if it was meant to go; else list it there again",
        )
        resume = self._sink.resume(collector_id)  # if it comes back it goes on from there
        self._sink.apply(
            Batch(
                collector_id=collector_id,
                sequence=resume.sequence + 1,
                target=target,
                launch_key=resume.launch_key,
                observations=(health,),
                checkpoint=resume.checkpoint,
            )
        )
