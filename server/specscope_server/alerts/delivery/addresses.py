"""Which addresses a channel may connect to (pure): checked on what a name resolved to, at connect time.

A channel's URL is chosen by whoever may write channels, and its name by whoever runs that zone. Without a
check this server could be made to reach its own network: other services on loopback, a cloud's metadata.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from specscope_server.kit.errors import InvalidInput

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*names: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(name) for name in names)


METADATA = _networks(
    "169.254.169.254/32",  # most clouds
    "169.254.170.2/32",  # tasks of ECS
    "168.63.129.16/32",  # Azure
    "100.100.100.200/32",  # Alibaba
    "192.0.0.192/32",  # Oracle
    "fd00:ec2::254/128",  # AWS
    "fd20:ce::254/128",  # Google
)
"""What tells a machine its own credentials: never, whatever anybody allows."""
NEVER = _networks(
    "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
    "::/128", "fe80::/10", "fec0::/10", "ff00::/8", "64:ff9b:1::/48", "::ffff:0:0:0/96",
)  # fmt: skip
"""This host, link-local, multicast, reserved and broadcast: no receiver of alerts is there. And what a
network translates by rules of its own (RFC 8215, RFC 7915), which may lead to any IPv4 address."""
PRIVATE = _networks(
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"
)  # fmt: skip
"""Private, shared (carriers, overlays) and loopback: only if allowed."""
_NAT64 = _networks("64:ff9b::/96", "64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """What one channel may reach."""

    allow_private: bool = False
    networks: tuple[Network, ...] = ()
    """Private networks that the operator opened to every channel."""

    def refusal(self, text: str) -> str | None:
        """Return why the address may not be connected to; None when it may."""
        try:
            outer = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            return "it is no address"
        return next(filter(None, map(self._refusal, (outer, *_inside(outer)))), None)

    def _refusal(self, address: Address) -> str | None:
        if _within(address, METADATA):
            return "it is a cloud's metadata service"
        if _within(address, self.networks):
            return None
        if _within(address, NEVER):
            return "it is link-local, multicast, reserved or translated locally"
        if isinstance(address, ipaddress.IPv6Address) and any(_inside(address)):
            return None  # judged by what is inside
        if _within(address, PRIVATE):
            return None if self.allow_private else "it is private"
        return None if address.is_global else "it is not public"


def parse_networks(names: Iterable[str]) -> tuple[Network, ...]:
    """Return networks of ``10.1.0.0/16`` or single addresses. Raises `InvalidInput`."""
    found = []
    for name in names:
        try:
            found.append(ipaddress.ip_network(name.strip()))
        except ValueError as error:
            raise InvalidInput(
                f"{name[:60]!r} is no network ({error}); write 10.1.0.0/16, fd12::/48 or one address"
            ) from None
    return tuple(found)


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _inside(address: Address) -> list[Address]:
    """Return the IPv4 addresses that an IPv6 address leads to through mapping or translation."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    found += list(address.teredo or ())
    number = int(address)
    if _within(address, _NAT64) or (address in _COMPATIBLE and number > 1):
        found.append(ipaddress.IPv4Address(number & 0xFFFF_FFFF))
    return [each for each in found if each is not None]
