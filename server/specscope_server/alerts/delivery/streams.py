"""Connections for httpcore that go through a `Connector` and never beyond its deadline."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

from specscope_server.alerts.delivery.connecting import Connector, NotConnected, Refused


class GuardedBackend(httpcore.NetworkBackend):
    """Makes every connection of a pool; proxies and retries of httpcore are not used."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:  # fmt: skip
        """Return a stream to a checked address. Raises `NotConnected`."""

        def connect(address: str, seconds: float) -> httpcore.NetworkStream:
            return self._plain.connect_tcp(address, port, seconds, socket_options=socket_options)

        return BoundedStream(self._connector.open(host, port, connect), self._connector)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        """Refuse: there is no receiver of alerts behind a file of this machine."""
        raise Refused("channels may not connect to sockets of this machine")

    def sleep(self, seconds: float) -> None:
        """Refuse to wait: trying again belongs to the outbox."""
        raise NotConnected("the connection was not made")


class BoundedStream(httpcore.NetworkStream):
    """A stream whose every wait ends at the deadline: a receiver that drips bytes holds nobody."""

    def __init__(self, inner: httpcore.NetworkStream, connector: Connector) -> None:
        self._inner = inner
        self._connector = connector

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came. Raises httpcore's errors."""
        return self._inner.read(max_bytes, self._left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it. Raises httpcore's errors."""
        self._inner.write(buffer, self._left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """End the connection."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Return the stream in TLS, checked against the name and not the address."""
        seconds = self._left(timeout, httpcore.ConnectTimeout)
        return BoundedStream(self._inner.start_tls(ssl_context, server_hostname, seconds), self._connector)

    def get_extra_info(self, info: str) -> Any:
        """Return what the stream says about itself."""
        return self._inner.get_extra_info(info)

    def _left(self, timeout: float | None, late: type[httpcore.TimeoutException]) -> float:
        left = self._connector.left()
        if left <= 0:
            raise late("the receiver took too long")
        return left if timeout is None else min(timeout, left)
