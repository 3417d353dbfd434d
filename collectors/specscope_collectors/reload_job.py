"""Follows the collectors' file: what changed in it takes effect, a file with errors is refused loudly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

import structlog

from specscope_collectors.clock import Clock
from specscope_collectors.collect_file import CollectFile, CollectFileError
from specscope_collectors.departures import Departures
from specscope_collectors.health import MAX_DETAIL
from specscope_collectors.job_set import JobSetError
from specscope_collectors.observations import Event, HealthState, SourceHealth
from specscope_collectors.own_health import REPORT_SECONDS, OwnHealth
from specscope_collectors.plan import CollectPlan

T = TypeVar("T")

SOURCE = "collect_file"
POLL_SECONDS = 3.0

log = structlog.get_logger("specscope.collector")


class ReloadJob:
    """Looks every few seconds whether the file (or a key's file that it names) was written."""

    name = SOURCE

    def __init__(
        self,
        file: CollectFile,
        apply: Callable[[CollectPlan], Awaitable[None]],
        health: OwnHealth,
        departures: Departures,
        pool: Executor,
        clock: Clock,
    ) -> None:
        self._file = file
        self._apply = apply
        self._health = health
        self._departures = departures
        self._is_resumed = False
        self._pool = pool
        self._clock = clock
        self._touched: object = None
        self._fingerprint = ""
        """Of what is in force or was refused last."""
        self._problems: tuple[str, ...] = ()
        self._unsaid: list[Event] = []
        self._said_ms: int | None = None

    async def step(self) -> float:
        """Take a changed file over, or say why not."""
        touched = await self._in_pool(self._file.touched)
        if touched != self._touched:
            await self._look()
            self._touched = touched
        await self._resume()
        self._departures.check()
        await self._say()
        return POLL_SECONDS

    async def close(self) -> None:
        """Nothing is open."""

    async def _resume(self) -> None:
        if not self._is_resumed:
            data: bytes | None = await self._in_pool(self._health.resume)
            self._departures.restore(data or b"")
            self._is_resumed = True

    async def _look(self) -> None:
        fingerprint = await self._in_pool(self._file.fingerprint)
        if fingerprint == self._fingerprint:
            return
        is_first, self._fingerprint = not self._fingerprint, fingerprint
        try:
            await self._apply(await self._in_pool(self._file.load))
        except (CollectFileError, JobSetError) as error:
            self._refuse(error.problems)
        else:
            if not is_first or self._problems:
                self._take()

    def _refuse(self, problems: tuple[str, ...]) -> None:
        self._problems = problems
        self._said_ms = None
        log.error("collectors' file refused, the former one stays in force", problems=problems)
        self._note("collect_file_refused", "the collectors' file has errors; the former one stays in force")

    def _take(self) -> None:
        self._problems = ()
        self._said_ms = None
        log.info("collectors' file taken over", path=str(self._file.path))
        self._note("collect_file_changed", "a changed collectors' file is in force")

    def _note(self, kind: str, message: str) -> None:
        detail = {"path": str(self._file.path), "problems": list(self._problems)[:20]}
        self._unsaid.append(Event(kind=kind, time_ms=self._clock(), message=message, detail=detail))

    async def _say(self) -> None:
        now_ms = self._clock()
        if self._said_ms is not None and abs(now_ms - self._said_ms) < REPORT_SECONDS * 1000:
            return
        events = self._unsaid[:]
        health = self._state(now_ms)
        checkpoint = self._departures.encode()
        await self._in_pool(lambda: self._health.report([health, *events], checkpoint))
        del self._unsaid[: len(events)]
        self._said_ms = now_ms

    def _state(self, now_ms: int) -> SourceHealth:
        count = len(self._problems)
        words = (
            f"{count} error{'s' * (count != 1)}; the former file stays in force: {'; '.join(self._problems)}"
        )
        return SourceHealth(
            source=SOURCE,
            time_ms=now_ms,
            state=HealthState.INVALID if count else HealthState.OK,
            url=str(self._file.path)[:MAX_DETAIL],
            duration_seconds=0.0,
            refused=count,
            detail=words[:MAX_DETAIL] if count else "",
            remedy="correct the file; it is read again when it changes" if count else "",
        )

    async def _in_pool(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
