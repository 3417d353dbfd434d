"""A mail server on loopback that says what its script says; speaks enough of SMTP for one message."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.loopback import accepting


@dataclass
class Mailbox:
    """Listens; keeps messages and what was said."""

    tls: ssl.SSLContext | None = None
    offers_starttls: bool = True
    is_tls_from_the_start: bool = False
    answers: dict[str, str] = field(default_factory=dict)
    """First word of a command → answer instead of the good one; "" = the connection ends without one."""
    messages: list[bytes] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    said_in_clear: list[str] = field(default_factory=list)
    port: int = 0

    @contextmanager
    def running(self) -> Iterator[Mailbox]:
        """Listen until the block ends."""
        with accepting(0, self._take) as self.port:
            yield self

    def _take(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with suppress(OSError, ValueError), ExitStack() as stack:
            self._talk(stack.enter_context(connection), stack)

    def _talk(self, connection: socket.socket, stack: ExitStack) -> None:
        is_secured = self.is_tls_from_the_start
        if is_secured:
            connection = self._secured(connection, stack)
        connection.sendall(b"220 mail.example\r\n")
        lines = stack.enter_context(connection.makefile("rb"))
        while line := lines.readline().decode().strip():
            word = line.split()[0].upper()
            self.said.append(line)
            if not is_secured:
                self.said_in_clear.append(line)
            answer = self.answers.get(word, self._good(word, is_secured))
            if not answer:
                return
            connection.sendall(f"{answer}\r\n".encode())
            if word == "STARTTLS" and answer.startswith("220"):
                connection, is_secured = self._secured(connection, stack), True
                lines = stack.enter_context(connection.makefile("rb"))
            if word == "DATA" and answer.startswith("354"):
                self._message(lines)
                if (after := self.answers.get("MESSAGE", "250 taken")) == "":
                    return
                connection.sendall(f"{after}\r\n".encode())
            if word == "QUIT":
                return

    def _secured(self, connection: socket.socket, stack: ExitStack) -> socket.socket:
        assert self.tls is not None
        return stack.enter_context(self.tls.wrap_socket(connection, server_side=True))

    def _good(self, word: str, is_secured: bool) -> str:
        if word == "EHLO":
            more = "250-STARTTLS\r\n" if self.offers_starttls and not is_secured else ""
            return f"250-mail.example\r\n{more}250 AUTH PLAIN"
        return {"DATA": "354 go on", "AUTH": "235 come in", "STARTTLS": "220 go on"}.get(word, "250 fine")

    def _message(self, lines: object) -> None:
        content = b""
        while (line := lines.readline()) not in (b".\r\n", b""):  # type: ignore[attr-defined]
            content += line.removeprefix(b".") if line.startswith(b"..") else line
        self.messages.append(content)
