"""Receive the file of a reference: bounded in bytes, in time, and in how many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from specscope_collectors.references.document import MAX_FILE_BYTES
from specscope_server.kit.errors import TooLarge, TooSlow, Unavailable, UnsupportedMedia

KINDS = ("application/gzip", "application/x-gzip", "application/json", "application/octet-stream")
AT_ONCE = 2
READ_SECONDS = 60.0


@dataclass(slots=True)
class _Held:
    count: int = 0


async def receive_file(request: Request) -> AsyncIterator[bytes]:
    """Yield the body. Raises `UnsupportedMedia`, `TooLarge`, `TooSlow`, `Unavailable`."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in KINDS or request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia(
            f"Content-Type {media[:60]!r} is not read here; send {', '.join(KINDS)}, without Content-Encoding"
        )
    held: _Held = getattr(request.app.state, "reference_uploads", None) or _Held()
    request.app.state.reference_uploads = held
    if held.count >= AT_ONCE:
        raise Unavailable(f"{AT_ONCE} other references are being read; try again in a moment")
    held.count += 1
    try:
        async with asyncio.timeout(READ_SECONDS):
            content = await _read(request)
        yield content
    except TimeoutError:
        raise TooSlow(f"the reference did not arrive within {READ_SECONDS:g} s") from None
    finally:
        held.count -= 1


async def _read(request: Request) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MAX_FILE_BYTES:
            raise TooLarge(f"the reference is over {MAX_FILE_BYTES} bytes; build it with fewer token ids")
    return bytes(content)


Uploaded = Annotated[bytes, Depends(receive_file)]
