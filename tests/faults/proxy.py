"""A TCP proxy that cuts, resets and delays connections after so many bytes, by chance, either way."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Cutting:
    """Where, by chance; a connection that is kept alive is cut in the end."""

    seed: int
    longest_bytes: int = 40_000
    port: int = 0
    cuts: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def budget(self) -> int:
        """Return after how many bytes of one direction the connection is cut."""
        return self.chance.randrange(self.longest_bytes)


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cutting: Cutting, budget: int
) -> None:
    while data := await reader.read(4_096):
        if cutting.chance.random() < 0.05:
            await asyncio.sleep(cutting.chance.random() / 20)
        if len(data) >= budget:
            writer.write(data[:budget])
            with suppress(ConnectionError):
                await writer.drain()
            cutting.cuts += 1
            raise ConnectionAbortedError
        budget -= len(data)
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset, so that even what was sent may not arrive."""
    found = writer.get_extra_info("socket")
    with suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _serve(cutting: Cutting, upstream: int, ready: threading.Event, stop: asyncio.Event) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", upstream)
        except OSError:
            writer.close()
            return
        ways = [
            asyncio.ensure_future(_forward(reader, back, cutting, cutting.budget())),
            asyncio.ensure_future(_forward(there, writer, cutting, cutting.budget())),
        ]
        try:
            await asyncio.gather(*ways)
        except (OSError, asyncio.CancelledError):
            for way in ways:
                way.cancel()
            for each in (writer, back):
                _reset(each) if cutting.chance.random() < 0.5 else each.close()
        finally:
            await asyncio.gather(*ways, return_exceptions=True)
            for each in (writer, back):
                each.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    cutting.port = server.sockets[0].getsockname()[1]
    ready.set()
    await stop.wait()
    server.close()


@contextmanager
def proxying(upstream: int, cutting: Cutting) -> Iterator[Cutting]:
    """Forward to a port of this machine while the block runs."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_serve(cutting, upstream, ready, stop))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield cutting
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
