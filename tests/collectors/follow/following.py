"""A log that is written, a job that follows it, and a sink that remembers what it was given."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from specscope_collectors.board import Board
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import Job, JobContext
from specscope_collectors.observations import Batch, Event, Launch, Level, Observation, Resume, SourceHealth
from specscope_collectors.sources.sglang_log.job import Config, build

NOW_MS = 1_796_000_000_000


class SinkDownError(RuntimeError):
    """The sink does not take anything now."""


class MemorySink:
    """Applies each sequence once, like the store; can refuse the next batches."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.down_for = 0
        self.takes_but_fails = False
        """Stores the next batch, but the answer is lost."""

    def resume(self, collector_id: str) -> Resume:
        """Return the last applied sequence and checkpoint."""
        mine = [batch for batch in self.batches if batch.collector_id == collector_id]
        if not mine:
            return Resume()
        checkpoint = next(
            (batch.checkpoint for batch in reversed(mine) if batch.checkpoint is not None), None
        )
        return Resume(sequence=mine[-1].sequence, checkpoint=checkpoint)

    def apply(self, batch: Batch) -> bool:
        """Keep the batch."""
        if self.down_for:
            self.down_for -= 1
            raise SinkDownError
        if batch.sequence <= self.resume(batch.collector_id).sequence:
            return False
        self.batches.append(batch)
        if self.takes_but_fails:
            self.takes_but_fails = False
            raise SinkDownError
        return True

    @property
    def observations(self) -> list[Observation]:
        """Return everything in the order of the batches."""
        return [record for batch in self.batches for record in batch.observations]

    @property
    def levels(self) -> list[Level]:
        """Return the levels that are not about the source itself."""
        return [
            record
            for record in self.observations
            if isinstance(record, Level) and not record.metric.startswith("scrape.")
        ]

    @property
    def launches(self) -> list[Launch]:
        """Return the launches."""
        return [record for record in self.observations if isinstance(record, Launch)]

    @property
    def health(self) -> SourceHealth:
        """Return the newest health."""
        return [record for record in self.observations if isinstance(record, SourceHealth)][-1]

    def events(self, kind: str) -> list[Event]:
        """Return the events of a kind."""
        return [each for each in self.observations if isinstance(each, Event) and each.kind == kind]

    def keys(self, metric: str) -> set[str | None]:
        """Return the launches to which a metric was given."""
        return {
            batch.launch_key
            for batch in self.batches
            for record in batch.observations
            if isinstance(record, Level) and record.metric == metric
        }


class Follower:
    """Makes the job, calls its steps, and kills it."""

    def __init__(self, path: Path | str, sink: MemorySink | None = None, **config: Any) -> None:
        self.sink = sink or MemorySink()
        self.board = Board()
        self.now = 0.0
        self.now_ms = NOW_MS
        self.path = path
        self.config = config
        self._pool = ThreadPoolExecutor(1)
        self.job = self._made()

    def step(self, seconds: float = 1.0) -> float:
        """Let time pass and do one step."""
        self.now += seconds
        self.now_ms += round(seconds * 1000)
        return asyncio.run(self.job.step())

    def drain(self, steps: int = 8) -> None:
        """Do steps until nothing more comes."""
        quiet = 0
        while quiet < steps:
            before = len(self.sink.levels)
            has_more = self.step() == 0.0
            quiet = 0 if has_more or len(self.sink.levels) != before else quiet + 1

    def restart(self) -> None:
        """Forget everything that is not in the sink."""
        asyncio.run(self.job.close())
        self.job = self._made()

    def close(self) -> None:
        """End."""
        asyncio.run(self.job.close())
        self._pool.shutdown()

    def context(self) -> JobContext:
        """Return what a job is given."""
        return JobContext(
            sink=self.sink,
            options=CollectorOptions(),
            clock=lambda: self.now_ms,
            monotonic=lambda: self.now,
            pool=self._pool,
            board=self.board,
        )

    def _made(self) -> Job:
        (job,) = build(Config(path=str(self.path), server="gpu1", **self.config), self.context())
        return job
