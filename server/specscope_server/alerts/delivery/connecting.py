"""Connect to a name: resolve, check every address, connect to one that was checked.

The address that was checked is the one that is connected to: a name that resolves to something else a moment
later (DNS rebinding) changes nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import httpcore

from specscope_server.alerts.delivery.addresses import AddressPolicy

Resolver: TypeAlias = Callable[[str, int], list[str]]
"""(host, port) → addresses, in the order in which to try them. Raises `OSError`."""
CONNECT_SECONDS = 10.0
Opened = TypeVar("Opened")


class NotConnected(Exception):
    """Nothing was sent: the name was not resolved, or nobody took the connection."""


class Refused(NotConnected):
    """Nothing was sent: the name leads where this channel may not connect to."""


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a name as the operating system says them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Connector:
    """Opens connections for one attempt."""

    policy: AddressPolicy
    deadline: float
    """On `time.monotonic`: nothing waits beyond it."""
    resolver: Resolver = resolve
    connect_seconds: float = CONNECT_SECONDS

    def left(self) -> float:
        """Return the seconds until the deadline; 0 or less when it has passed."""
        return self.deadline - time.monotonic()

    def checked(self, host: str, port: int) -> list[str]:
        """Return the addresses of a name, if every one of them may be connected to. Raises `NotConnected`."""
        addresses = self._resolved(host, port)
        for address in addresses:
            reason = self.policy.refusal(address)
            if reason is not None:
                raise Refused(
                    f"{host} leads to {address}, which channels may not connect to: {reason}; "
                    "see allow_private and alerts_private_networks"
                )
        return addresses

    def open(self, host: str, port: int, connect: Callable[[str, float], Opened]) -> Opened:
        """Return what ``connect(address, seconds)`` made with the first checked address that answers.

        Raises `NotConnected`.
        """
        until = time.monotonic() + min(self.connect_seconds, self.left())
        reason = "it has no address"
        for address in self.checked(host, port):
            seconds = until - time.monotonic()
            if seconds <= 0:
                raise NotConnected(f"{host} did not take the connection in time")
            try:
                return connect(address, seconds)
            except (OSError, httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                reason = getattr(error, "strerror", None) or str(error) or "no answer in time"
        raise NotConnected(f"{host} does not take connections: {reason}")

    def open_socket(self, host: str, port: int) -> socket.socket:
        """Return a connected socket. Raises `NotConnected`."""
        return self.open(
            host, port, lambda address, seconds: socket.create_connection((address, port), seconds)
        )

    def _resolved(self, host: str, port: int) -> list[str]:
        """The system's resolver takes no time limit: it is asked on a thread that may be left behind."""
        looking = _Lookup(self.resolver, host, port)
        looking.join(max(min(self.connect_seconds, self.left()), 0))
        if looking.error is not None:
            raise NotConnected(f"the name {host} cannot be resolved: {looking.error}")
        if not looking.found:
            raise NotConnected(f"the name {host} was not resolved in time")
        return looking.found


class _Lookup(threading.Thread):
    def __init__(self, resolver: Resolver, host: str, port: int) -> None:
        super().__init__(daemon=True, name="resolve-channel")
        self._resolver, self._host, self._port = resolver, host, port
        self.found: list[str] = []
        self.error: str | None = None
        self.start()

    def run(self) -> None:
        try:
            self.found = self._resolver(self._host, self._port)
        except (OSError, UnicodeError) as error:
            self.error = getattr(error, "strerror", None) or str(error)
