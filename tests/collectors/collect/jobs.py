"""Jobs and plans for tests of what runs them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.collectors.runner.engine import MemorySink

from specscope_collectors.board import Board
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.jobs import JobKind
from specscope_collectors.plan import JobPlan

DEADLINE_SECONDS = 60.0
POOL = ThreadPoolExecutor(2, "test-work")


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job of these tests is told."""

    name: str
    every: float = 0.01
    fails: int = 0
    """The first steps that raise."""
    is_wrong: bool = False


@dataclass
class Counting:
    """Counts its steps; the first ``fails`` of them raise."""

    config: Config
    steps: int = 0
    closed: int = 0
    stepping: int = 0
    overlapped: bool = False

    @property
    def name(self) -> str:
        return self.config.name

    async def step(self) -> float:
        self.overlapped |= self.stepping > 0
        self.stepping += 1
        try:
            self.steps += 1
            await asyncio.sleep(0)
            if self.steps <= self.config.fails:
                raise RuntimeError("a bug")
        finally:
            self.stepping -= 1
        return self.config.every

    async def close(self) -> None:
        self.closed += 1


@dataclass
class Workshop:
    """Makes jobs and remembers them."""

    made: list[Counting] = field(default_factory=list)
    options: list[CollectorOptions] = field(default_factory=list)

    def build(self, config: Config, context: JobContext) -> list[Job]:
        if config.is_wrong:
            raise JobError(f"{config.name} cannot be")
        job = Counting(config)
        self.options.append(context.options)
        self.made.append(job)
        return [job]

    def plans(self, *configs: Config) -> list[JobPlan]:
        kind = JobKind("counting", Config, self.build)
        return [
            JobPlan(kind=kind, config=config, where=f"f.toml: [[counting]] {number}")
            for number, config in enumerate(configs, 1)
        ]


def context(**changes: Any) -> JobContext:
    """Return what jobs are given."""
    values: dict[str, Any] = {
        "sink": MemorySink(),
        "options": CollectorOptions(),
        "clock": lambda: 1_800_000_000_000,
        "monotonic": time.monotonic,
        "pool": POOL,
        "board": Board(),
    }
    return JobContext(**values | changes)


async def until(condition: Callable[[], bool]) -> None:
    """Poll until true; fail at the deadline."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < end, "the deadline passed"
        await asyncio.sleep(0.002)


def wait_until(condition: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Poll until true; fail at the deadline."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the deadline passed"
        time.sleep(0.01)


def names(items: Sequence[Any]) -> list[str]:
    """Return names in order."""
    return sorted(item.name for item in items)
