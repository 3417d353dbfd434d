"""Listen on loopback while a block runs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread


@contextmanager
def accepting(port: int, take: Callable[[socket.socket], None]) -> Iterator[int]:
    """Give each connection to ``take``, one after the other; yield the port (0: any free one)."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = Thread(target=_accept, args=(listener, take), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _accept(listener: socket.socket, take: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        take(connection)
