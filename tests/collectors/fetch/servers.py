"""Real HTTP servers that misbehave in one chosen way each, run in a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Answering: TypeAlias = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """What a server was asked."""

    path: str
    headers: dict[str, str]


@dataclass
class Server:
    """A running server and what it was asked so far."""

    port: int = 0
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


def response(body: bytes, status: str = "200 OK", content_type: str = "text/plain", **headers: str) -> bytes:
    """Return a whole HTTP response; keyword names become headers with dashes."""
    named = {"content_type": content_type, "content_length": str(len(body)), "connection": "close"} | headers
    lines = [f"HTTP/1.1 {status}", *(f"{key.replace('_', '-')}: {value}" for key, value in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def always(raw: bytes) -> Answering:
    """Answer every request with these bytes, then close."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return answer


async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
    """Accept and never answer."""
    await asyncio.sleep(3600)


async def drip(request: Request, writer: asyncio.StreamWriter) -> None:
    """Send one byte at a time for ever: every single read is quick."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.02)


async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
    """Cut the connection with a reset in the middle of the answer."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nsome")
    await writer.drain()
    writer.transport.abort()


def flood(total_bytes: int, *, chunk: bytes = b"x" * 65536) -> Answering:
    """Stream a huge chunked body without ever holding it."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(total_bytes // len(chunk)):
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    return answer


@contextlib.contextmanager
def serving(answering: Answering, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a server until the block ends."""
    server, ready, loop = (
        Server(scheme="https" if tls else "http"),
        threading.Event(),
        asyncio.new_event_loop(),
    )
    thread = threading.Thread(target=_run, args=(loop, answering, tls, server, ready), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def _run(
    loop: asyncio.AbstractEventLoop,
    answering: Answering,
    tls: ssl.SSLContext | None,
    server: Server,
    ready: threading.Event,
) -> None:
    writers: set[asyncio.StreamWriter] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with contextlib.suppress(
            ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError
        ):
            request = await _read(reader)
            server.requests.append(request)
            await (answering if request.path else always(response(b"", "400 Bad Request")))(request, writer)
            await writer.drain()
        writer.close()

    async def start() -> asyncio.Server:
        started = await asyncio.start_server(connection, "localhost", 0, ssl=tls)
        server.port = started.sockets[0].getsockname()[1]
        return started

    async def finish() -> None:
        started.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    asyncio.set_event_loop(loop)
    loop.set_exception_handler(lambda *_: None)  # broken connections are the point here
    started = loop.run_until_complete(start())
    ready.set()
    loop.run_forever()
    loop.run_until_complete(finish())
    loop.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    """Read the head of a request; an empty path stands for something that is no HTTP (a TLS hello)."""
    first = await reader.readexactly(1)
    if not first.isalpha():
        return Request("", {})
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    return Request(head[0].split(" ")[1], headers)
