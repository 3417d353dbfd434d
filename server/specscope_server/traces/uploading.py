"""Receive the file of a capture into a temporary file: bounded in bytes, in time, and in how many at once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO, Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from specscope_server.kit.errors import TooLarge, TooSlow
from specscope_server.kit.web.uploads import check_kind, places_of

KINDS = ("application/gzip", "application/x-gzip", "application/json", "application/x-tar")
AT_ONCE = 2
FULL = f"{AT_ONCE} other traces are being read; try again in a minute"
READ_SECONDS = 900.0
WRITE_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class Upload:
    """What was sent, at its beginning."""

    file: IO[bytes]
    bytes: int


async def receive_upload(request: Request) -> AsyncIterator[Upload]:
    """Yield the upload; its file goes with the answer.

    Raises `UnsupportedMedia`, `TooLarge`, `TooSlow`, and `Unavailable` when too many come at once.
    """
    check_kind(request, KINDS)
    limit = int(request.app.state.settings.max_trace_bytes)
    with (
        places_of(request, "trace_uploads", AT_ONCE, FULL).place(),
        tempfile.TemporaryFile(prefix="specscope-trace-") as file,
    ):
        try:
            async with asyncio.timeout(READ_SECONDS):
                size = await _write(request, file, limit)
        except TimeoutError:
            raise TooSlow(
                f"the trace did not arrive within {READ_SECONDS:g} s; import it on its host"
            ) from None
        file.seek(0)
        yield Upload(file, size)


async def _write(request: Request, file: IO[bytes], limit: int) -> int:
    pending, size = bytearray(), 0
    async for part in request.stream():
        pending += part
        size += len(part)
        if size > limit:
            raise TooLarge(
                f"the trace is over max_trace_bytes={limit}; capture fewer steps or raise the setting"
            )
        if len(pending) >= WRITE_BYTES:
            await run_in_threadpool(file.write, bytes(pending))
            pending.clear()
    file.write(bytes(pending))
    return size


Uploaded = Annotated[Upload, Depends(receive_upload)]
