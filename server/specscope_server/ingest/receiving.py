"""Read pushed bodies: bounded in bytes, in time, and in how many are held at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from specscope_server.ingest.decoding import Batches, too_large, unpack
from specscope_server.ingest.service import MeteredSink
from specscope_server.ingest.sharing import Sharing
from specscope_server.kit.errors import TooSlow
from specscope_server.kit.web.uploads import Places

AT_ONCE = 4
"""Bodies held at the same time; more would wait for the database anyway, and take memory and threads."""
FULL = f"{AT_ONCE} other bodies are being stored; try again in a moment"
READ_SECONDS = 30.0


@dataclass(slots=True)
class Ingest:
    """What this application takes pushed batches with."""

    sink: MeteredSink
    sharing: Sharing
    limit_bytes: int
    places: Places = field(default_factory=lambda: Places(AT_ONCE, FULL))
    """Of bodies that are being read or applied."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """A body as it came."""

    raw: bytes
    media: str
    encoding: str
    limit_bytes: int

    def batches(self) -> Batches:
        """Unpack; for a worker thread, since it may take a while. Raises as `unpack` and `Batches` do."""
        return Batches(unpack(self.raw, self.encoding, self.limit_bytes), self.media)


def get_ingest(request: Request) -> Ingest:
    """Return what the application of this request takes batches with."""
    return cast(Ingest, request.app.state.ingest)


Ingesting = Annotated[Ingest, Depends(get_ingest)]


async def read_pushed(request: Request, ingest: Ingesting) -> AsyncIterator[Pushed]:
    """Yield the body; its place is given back when the answer is on its way.

    Raises `Unavailable` when too many are held, `TooLarge`, `TooSlow`.
    """
    with ingest.places.place():
        try:
            async with asyncio.timeout(READ_SECONDS):
                raw = await _read(request, ingest.limit_bytes)
        except TimeoutError:
            raise TooSlow(f"the body did not arrive within {READ_SECONDS:g} s; send smaller ones") from None
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = request.headers.get("content-encoding", "").strip().lower()
        yield Pushed(raw, media, encoding, ingest.limit_bytes)


async def _read(request: Request, limit: int) -> bytes:
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > limit:
            raise too_large(limit)
    return bytes(content)


Body = Annotated[Pushed, Depends(read_pushed)]
