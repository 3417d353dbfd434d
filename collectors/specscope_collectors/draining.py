"""An executor that knows what is still being done in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Draining(Executor):
    """Work of one target in a shared pool: a batch that is being stored outlives the cancelled task."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._running: set[Future[object]] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run in the shared pool."""
        future = self._pool.submit(fn, *args, **kwargs)
        self._running.add(future)  # type: ignore[arg-type]
        future.add_done_callback(self._running.discard)
        return future

    async def drain(self, timeout_seconds: float) -> None:
        """Wait until nothing runs, but not longer than ``timeout_seconds``."""
        running = [asyncio.wrap_future(future) for future in tuple(self._running)]
        if running:
            done, _ = await asyncio.wait(running, timeout=timeout_seconds)
            for each in done:
                if not each.cancelled():
                    each.exception()  # it was told where it happened
