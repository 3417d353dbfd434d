"""Reads the sources of one target: fetching on the event loop, parsing in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from dataclasses import replace
from typing import TypeVar

import httpx

from specscope_collectors.clock import Clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.fetch import Answer, fetch, headers_for
from specscope_collectors.observations import HealthState, Labels, Target
from specscope_collectors.sources import sglang_info, sglang_loads
from specscope_collectors.sources.sglang_info.body import MAX_BODY_BYTES
from specscope_collectors.sources.sglang_info.reading import InfoReading, read_info
from specscope_collectors.sources.sglang_loads.reading import LoadsReading, read_loads
from specscope_collectors.sources.sglang_metrics.reading import PATH, MetricsReading, read_metrics

T = TypeVar("T")


class Reader:
    """One target's sources. ``/health`` is never asked: it makes the engine run a generation."""

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
        self._small = replace(options, max_body_bytes=min(options.max_body_bytes, MAX_BODY_BYTES))
        self._clock = clock
        self._pool = pool

    async def metrics(self, *, adaptive: bool = False) -> MetricsReading:
        """Read ``/metrics``."""
        answer, time_ms = await self._get(PATH, self._options)
        limit = self._options.max_series_per_target
        return await self.in_thread(
            lambda: read_metrics(answer, time_ms, max_series=limit, adaptive=adaptive)
        )

    async def info(self) -> InfoReading:
        """Read ``/server_info``, or its old name where the new one does not exist."""
        for path in sglang_info.PATHS:
            answer, time_ms = await self._get(path, self._small)
            if answer.state is not HealthState.DISABLED:
                break
        return await self.in_thread(lambda: read_info(answer, time_ms, api_key=self._options.api_key))

    async def loads(self, *, already: Collection[str], labels: Labels) -> LoadsReading:
        """Read ``/v1/loads``; metrics in ``already`` are left to the source that gives them."""
        answer, time_ms = await self._get(sglang_loads.PATH, self._small)
        return await self.in_thread(lambda: read_loads(answer, time_ms, already=already, labels=labels))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run ``work`` beside the event loop, so that a large answer does not delay other targets."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _get(self, path: str, options: CollectorOptions) -> tuple[Answer, int]:
        url = self._target.base_url + path
        headers = headers_for(url, self._target, self._options)
        answer = await fetch(self._client, url, options=options, headers=headers)
        return answer, self._clock()
