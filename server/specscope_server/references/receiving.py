"""Receive the file of a reference: bounded in bytes, in time, and in how many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from specscope_collectors.references.document import MAX_FILE_BYTES
from specscope_server.kit.errors import TooLarge, TooSlow
from specscope_server.kit.web.uploads import check_kind, places_of

KINDS = ("application/gzip", "application/x-gzip", "application/json", "application/octet-stream")
AT_ONCE = 2
FULL = f"{AT_ONCE} other references are being read; try again in a moment"
READ_SECONDS = 60.0


async def receive_file(request: Request) -> AsyncIterator[bytes]:
    """Yield the body. Raises `UnsupportedMedia`, `TooLarge`, `TooSlow`, `Unavailable`."""
    check_kind(request, KINDS)
    with places_of(request, "reference_uploads", AT_ONCE, FULL).place():
        try:
            async with asyncio.timeout(READ_SECONDS):
                content = await _read(request)
        except TimeoutError:
            raise TooSlow(f"the reference did not arrive within {READ_SECONDS:g} s") from None
        yield content


async def _read(request: Request) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MAX_FILE_BYTES:
            raise TooLarge(f"the reference is over {MAX_FILE_BYTES} bytes; build it with fewer token ids")
    return bytes(content)


Uploaded = Annotated[bytes, Depends(receive_file)]
