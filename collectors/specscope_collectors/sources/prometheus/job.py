"""Back-fill and follow as a job: all servers that one API knows, round by round a chunk of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.schedule import Due
from specscope_collectors.sources.prometheus import SOURCE
from specscope_collectors.sources.prometheus.api import ApiProblem
from specscope_collectors.sources.prometheus.connection import ApiConfigError
from specscope_collectors.sources.prometheus.discovery import Found, discover
from specscope_collectors.sources.prometheus.durations import duration_ms, moment_ms
from specscope_collectors.sources.prometheus.history import History
from specscope_collectors.sources.prometheus.segment import SharedError
from specscope_collectors.sources.prometheus.settings import (
    Config,
    history_of,
    history_target,
    make_api,
    question,
)
from specscope_collectors.sources.prometheus.telling import Teller
from specscope_collectors.threads import in_thread

__all__ = ["Config", "PrometheusJob", "build"]

POLL_SECONDS = 15.0
DISCOVER_SECONDS = 300.0
FIRST_RETRY_SECONDS, MOST_RETRY_SECONDS = 5.0, 300.0

log = structlog.get_logger("specscope.collector")


def build(config: Config, context: JobContext) -> list[Job]:
    """Return the job. Raises `JobError`."""
    try:
        return [PrometheusJob(config, context)]
    except ApiConfigError as error:
        raise JobError(f"prometheus: {error}") from None


class PrometheusJob:
    """One API. What is stored of a server decides where its reading goes on."""

    def __init__(self, config: Config, context: JobContext) -> None:
        self._config = config
        self._context = context
        self._client, self._api = make_api(config, context.options)
        self.name = f"{SOURCE}:{self._api.url}"
        self._teller = Teller(self.name, self._api, context.sink, context.clock)
        self._discover = Due(DISCOVER_SECONDS, context.monotonic)
        self._found: Found | None = None
        self._histories: dict[str, History] = {}
        self._end_ms: int | None = None
        """Where reading ends when nothing is followed."""
        self._retry_seconds = FIRST_RETRY_SECONDS

    async def step(self) -> float:
        """Read one chunk of each server; return 0 while there is more to read."""
        try:
            now_ms = await self._api.now_ms()
            found = await self._look(now_ms)
            is_done = await self._round(found, now_ms)
        except ApiProblem as problem:
            await self._in_thread(partial(self._teller.problem, problem, dict(self._histories)))
            wait, self._retry_seconds = self._retry_seconds, min(2 * self._retry_seconds, MOST_RETRY_SECONDS)
            return wait
        self._retry_seconds = FIRST_RETRY_SECONDS
        return POLL_SECONDS if is_done else 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _look(self, now_ms: int) -> Found:
        """Find out which servers are there, now and then."""
        if self._found is None or self._discover.now():
            from_ms = moment_ms(self._config.back_fill, now_ms)
            self._found = await discover(self._api, question(self._config, from_ms, now_ms))
            self._discover.restart()
            await self._in_thread(partial(self._teller.found, "; ".join(self._found.left_out)))
        return self._found

    async def _round(self, found: Found, now_ms: int) -> bool:
        is_done = True
        for name in found.servers:
            watched = self._context.board.look(name)
            if watched is not None:
                self._histories.pop(name, None)
                await self._in_thread(partial(self._teller.scraped, watched.target))
                continue
            try:
                is_done = await self._one(found, name, now_ms) and is_done
            except SharedError as error:
                self._histories.pop(name, None)  # what the other process stored is where to go on
                log.warning("another process reads this history", job=self.name, error=str(error))
        return is_done

    async def _one(self, found: Found, name: str, now_ms: int) -> bool:
        history = self._histories.get(name) or await self._open(found, name, now_ms)
        is_done = await history.advance(self._until_ms(now_ms), now_ms)
        await self._in_thread(partial(self._teller.well, name, history, is_done=is_done))
        return is_done

    async def _open(self, found: Found, name: str, now_ms: int) -> History:
        history = history_of(
            self._config,
            self._api,
            found,
            history_target(name, self._api),
            sink=self._context.sink,
            in_thread=self._in_thread,
            max_series=self._context.options.max_series_per_target,
        )
        await self._in_thread(partial(history.open, moment_ms(self._config.back_fill, now_ms)))
        self._histories[name] = history
        return history

    def _until_ms(self, now_ms: int) -> int:
        until_ms = now_ms - duration_ms(self._config.lag)
        if self._config.follow:
            return until_ms
        self._end_ms = self._end_ms or until_ms
        return self._end_ms

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await in_thread(work, self._context.pool)
