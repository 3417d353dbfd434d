"""Read what a client sends: bounded, decompressed, and only of kinds that a browser asks leave for.

Another site's page can make a reader's browser send plain forms and texts, but no JSON: a body of one of
those kinds is refused, so that a server on loopback without a token cannot be written to from outside.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from specscope_server.kit.errors import InvalidInput, TooLarge, UnsupportedMedia

JSON, NDJSON = "application/json", "application/x-ndjson"
GZIP_WINDOW = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body of JSON, or of JSON lines."""

    content: bytes
    is_lines: bool


async def read_json_body(request: Request) -> JsonBody:
    """Return the body. Raises `UnsupportedMedia`, `TooLarge`, and `InvalidInput` for broken gzip."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in (JSON, NDJSON):
        raise UnsupportedMedia(
            f"Content-Type {media[:60]!r} is not read here; send {JSON}, or {NDJSON} with one object a line"
        )
    limit = int(request.app.state.settings.max_push_bytes)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMedia(f"Content-Encoding {encoding[:40]!r} is not read here; send gzip or none")
    parts = request.stream() if encoding == "identity" else _unzipped(request.stream(), limit)
    content = bytearray()
    async for part in parts:
        content += part
        if len(content) > limit:
            raise TooLarge(
                f"the body is over max_push_bytes={limit}, unpacked; send it in parts or raise the setting"
            )
    return JsonBody(bytes(content), media == NDJSON)


async def _unzipped(stream: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield the content of one gzip member or several; never more than a byte over the limit at a time."""
    unzip = zlib.decompressobj(GZIP_WINDOW)
    try:
        async for part in stream:
            pending = part
            while pending:
                if unzip.eof:
                    unzip = zlib.decompressobj(GZIP_WINDOW)
                yield unzip.decompress(pending, limit + 1)
                pending = unzip.unconsumed_tail or unzip.unused_data
    except zlib.error as error:
        raise InvalidInput(f"the body is not gzip although Content-Encoding says so: {error}") from None
    if not unzip.eof:
        raise InvalidInput("the gzip body ends too early; send it whole")


Body = Annotated[JsonBody, Depends(read_json_body)]
