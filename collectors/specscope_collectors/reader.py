"""Reads the sources of one target: fetching on the event loop, parsing in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import TypeVar

import httpx

from specscope_collectors.clock import Clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.engine import Engine
from specscope_collectors.fetch import Answer, fetch, headers_for
from specscope_collectors.observations import Target
from specscope_collectors.scrape import PATH, MetricsReading, read_metrics

T = TypeVar("T")

MAX_SMALL_BYTES = 4 * 1024 * 1024
"""Largest answer of an endpoint besides ``/metrics``."""


class Reader:
    """One target's endpoints; what an engine is `Ask`-ed through."""

    def __init__(
        self,
        target: Target,
        client: httpx.AsyncClient,
        options: CollectorOptions,
        clock: Clock,
        pool: Executor | None = None,
    ) -> None:
        self._target = target
        self._client = client
        self._options = options
        self._small = replace(options, max_body_bytes=min(options.max_body_bytes, MAX_SMALL_BYTES))
        self._clock = clock
        self._pool = pool

    @property
    def api_key(self) -> str | None:
        """The key that is sent to the target."""
        return self._options.api_key

    async def metrics(self, last: Engine, *, adaptive: bool = False) -> MetricsReading:
        """Read ``/metrics``; ``last``: the engine that was there until now."""
        answer, time_ms = await self._get(PATH, self._options)
        limit = self._options.max_series_per_target
        return await self.in_thread(
            lambda: read_metrics(answer, time_ms, max_series=limit, last=last, adaptive=adaptive)
        )

    async def get(self, path: str) -> tuple[Answer, int]:
        """Return what another endpoint answers, and when (epoch ms)."""
        return await self._get(path, self._small)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run ``work`` beside the event loop, so that a large answer does not delay other targets."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _get(self, path: str, options: CollectorOptions) -> tuple[Answer, int]:
        url = self._target.base_url + path
        headers = headers_for(url, self._target, self._options)
        answer = await fetch(self._client, url, options=options, headers=headers)
        return answer, self._clock()
