"""Work in threads that changes what others look at afterwards: whoever waits for it waits to its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], pool: Executor | None = None) -> T:
    """Return what ``work`` returns, done beside the event loop (``pool`` None: in the loop's own threads).

    A thread cannot be stopped. Who is cancelled meanwhile learns of it when the work has ended, so that
    nobody takes back, closes or resumes what the thread still changes.
    """
    future = asyncio.get_running_loop().run_in_executor(pool, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        if not future.cancelled():
            future.exception()  # told where it happened
        raise
