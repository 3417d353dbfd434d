"""Runs one job again and again; whatever it does, the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random

import structlog

from specscope_collectors.job import Job

log = structlog.get_logger("specscope.collector")

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
CLOSE_SECONDS = 5.0
"""A job that takes longer to release what it holds is left behind."""


class JobLoop:
    """Steps one job until it is cancelled, then closes it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._failures = 0
        self._told = ""
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Do the next step now."""
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            while True:
                await self._pause(await self._step())
        finally:
            await close_job(self.job)

    async def _step(self) -> float:
        """Return in how many seconds to go on; longer and longer after errors, with some chance in it."""
        try:
            seconds = await self.job.step()
            if not math.isfinite(seconds):
                raise ValueError(f"step returned {seconds!r} seconds")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._failed("CancelledError()")  # something inside was cancelled, not this job
        except Exception as error:
            return self._failed(repr(error)[:500])
        if self._failures:
            log.info("job works again", job=self.job.name, failures=self._failures)
        self._failures, self._told = 0, ""
        return max(seconds, 0.0)

    def _failed(self, error: str) -> float:
        if error != self._told:
            self._told = error
            log.error("job failed", job=self.job.name, error=error)
        self._failures += 1
        longest = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 30), LONGEST_PAUSE_SECONDS)
        return longest * (0.5 + random.random() / 2)  # noqa: S311 (no secret)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()


async def close_job(job: Job) -> None:
    """Let a job release what it holds; one that fails or takes too long is left behind, and said."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await job.close()
    except Exception as error:
        log.warning("job did not close", job=job.name, error=repr(error)[:500])
