"""A receiver of alerts on loopback, down to the socket: it answers as its script says."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.support.loopback import accepting

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Received:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


Script: TypeAlias = "Callable[[socket.socket, Received], None]"


def answering(status: int, headers: str = "", body: bytes = b"") -> Script:
    """Return a script that answers with a status."""
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
    return lambda connection, _: connection.sendall(head + body)


def dying(connection: socket.socket, _: Received) -> None:
    """Take the request and end without an answer."""
    reset(connection)


def cut_after(count: int) -> Script:
    """Return a script that sends the first bytes of a good answer and resets the connection."""

    def script(connection: socket.socket, _: Received) -> None:
        connection.sendall(OK[:count])
        reset(connection)

    return script


def reset(connection: socket.socket) -> None:
    """Close with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.close()


@dataclass
class Receiver:
    """Listens; every request is kept and answered by `script`."""

    script: Script = field(default_factory=lambda: answering(200))
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    reset_after: int | None = None
    """Reset the connection after so many bytes of the request."""
    tls: ssl.SSLContext | None = None
    port: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[Receiver]:
        """Listen until the block ends."""
        with accepting(self.port, self._take) as self.port:
            yield self

    def _take(self, connection: socket.socket) -> None:
        self.connections += 1
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection, suppress(OSError, ValueError, IndexError):
            secured = self.tls.wrap_socket(connection, server_side=True) if self.tls else connection
            with secured:
                request = self._read(secured)
                if request is not None:
                    self.received.append(request)
                    self.script(secured, request)

    def _read(self, connection: socket.socket) -> Received | None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not self._more(connection, len(data)):
                return None
            data += connection.recv(1 if self.reset_after is not None else 65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
        while len(body) < int(headers.get("content-length", "0")):
            if not self._more(connection, len(head) + 4 + len(body)):
                return None
            part = connection.recv(1 if self.reset_after is not None else 65_536)
            if not part:
                return None
            body += part
        return Received(line, headers, body)

    def _more(self, connection: socket.socket, count: int) -> bool:
        if self.reset_after is None or count < self.reset_after:
            return True
        reset(connection)
        return False
