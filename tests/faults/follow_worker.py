"""Follows a log into a store until it is killed. Arguments: database URL, path of the log."""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from specscope_collectors.board import Board
from specscope_collectors.clock import system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.sources.sglang_log.job import Config, build
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter


async def follow(url: str, path: str) -> None:
    """Do steps for ever, with hardly a pause, so that any moment is hit."""
    context = JobContext(
        sink=IngestWriter(create_store_engine(url)),
        options=CollectorOptions(),
        clock=system_clock,
        monotonic=time.monotonic,
        pool=ThreadPoolExecutor(1),
        board=Board(),
    )
    (job,) = build(Config(path=path, server="gpu1", from_beginning=True, interval_seconds=0.02), context)
    while True:
        await asyncio.sleep(await job.step())


if __name__ == "__main__":
    asyncio.run(follow(*sys.argv[1:]))
