"""Listening sockets: a port that is taken is an error that names the port and the remedy."""

from __future__ import annotations

import socket


class PortUnavailableError(Exception):
    """The port cannot be listened on."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on ``host:port`` (0 takes a free port); raise `PortUnavailableError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because only then does asyncio turn Nagle's algorithm off.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise PortUnavailableError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. "
            f"Stop what uses port {port}, or choose another with --port."
        ) from error
    return listener
