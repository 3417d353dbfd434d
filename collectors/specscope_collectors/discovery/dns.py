"""Servers from DNS: address records with one port, or SRV records that bring theirs."""

from __future__ import annotations

import time
from typing import Literal

import dns.asyncresolver
import dns.exception
import dns.inet
import dns.nameserver
import dns.rdata
import dns.resolver
import msgspec

from specscope_collectors.clock import Monotonic
from specscope_collectors.discoveries import Answer, Discover, DiscoveryContext, DiscoveryError, Listed
from specscope_collectors.observations import HealthState
from specscope_collectors.parts import Parts

SHORTEST_SECONDS = 5.0
"""A record with a TTL of 0 is asked no more often than this."""


class Config(Discover, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names whose records are the servers. They are asked again when they expire, or after the interval."""

    names: list[str]
    """Names to look up, e.g. `_sglang._tcp.example.org`."""
    type: Literal["SRV", "A", "AAAA"] = "SRV"
    """Records to ask for; `SRV` brings host and port."""
    port: int | None = None
    """Of the servers behind `A` and `AAAA` records."""
    scheme: Literal["http", "https"] = "http"
    """How the servers are read."""
    resolvers: list[str] = msgspec.field(default_factory=list)
    """`ADDRESS` or `ADDRESS:PORT` of name servers; by default those of the system."""
    timeout_seconds: float = 5.0
    """Longest time for one answer."""
    keep_seconds: float = 3_600.0
    """For which the last good list outlives errors and a name that does not exist any more."""

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        Discover.__post_init__(self)
        if not self.names:
            raise ValueError('names is empty; name at least one: names = ["_sglang._tcp.example.org"]')
        if (self.port is None) == (self.type != "SRV"):
            raise ValueError(f"type = {self.type!r}: A and AAAA need a port, SRV brings its own")
        if self.port is not None and not 0 < self.port < 65_536:
            raise ValueError(f"port = {self.port}: a port is between 1 and 65535")
        if not self.timeout_seconds > 0 or not self.keep_seconds > 0:
            raise ValueError("timeout_seconds and keep_seconds must be greater than 0")
        for resolver in self.resolvers:
            nameserver(resolver)


def nameserver(text: str) -> dns.nameserver.Nameserver:
    """Return the name server meant by ``10.0.0.2``, ``10.0.0.2:5353`` or ``[::1]:53``. Raises ValueError."""
    host, port = text, 53
    if text.startswith("[") or text.count(":") == 1:
        host, _, number = text.rpartition(":")
        if not number.isascii() or not number.isdigit():
            raise ValueError(f"resolvers: {text!r} is no ADDRESS:PORT")
        port = int(number)
    host = host.strip("[]")
    if not dns.inet.is_address(host) or not 0 < port < 65_536:
        raise ValueError(f"resolvers: {text!r} is no ADDRESS or ADDRESS:PORT; names cannot be asked")
    return dns.nameserver.Do53Nameserver(host, port)


class Dns:
    """Asks each name; one that fails keeps its last good list for a while."""

    def __init__(self, config: Config, monotonic: Monotonic = time.monotonic) -> None:
        self.keep_seconds: float | None = config.keep_seconds
        self._config = config
        self._parts = Parts(config.keep_seconds, monotonic)
        self._resolver: dns.asyncresolver.Resolver | None = None

    @property
    def asked(self) -> str:
        """Return the names."""
        return ", ".join(self._config.names)

    async def look(self) -> Answer:
        """Ask all names. Raises `DiscoveryError` when none of them was answered."""
        resolver = self._resolver = self._resolver or self._made()
        lifetimes = [await self._ask(resolver, name) for name in self._config.names]
        known = [seconds for seconds in lifetimes if seconds is not None]
        return self._parts.answer(max(min(known), SHORTEST_SECONDS) if known else None)

    async def close(self) -> None:
        """Nothing is open."""

    def _made(self) -> dns.asyncresolver.Resolver:
        try:
            resolver = dns.asyncresolver.Resolver(configure=not self._config.resolvers)
        except dns.resolver.NoResolverConfiguration as error:
            raise DiscoveryError(f"this machine names no resolver: {error}", remedy="set resolvers") from None
        if self._config.resolvers:
            resolver.nameservers = [nameserver(text) for text in self._config.resolvers]
        resolver.lifetime = self._config.timeout_seconds
        return resolver

    async def _ask(self, resolver: dns.asyncresolver.Resolver, name: str) -> float | None:
        """Note what a name lists; return the seconds until it expires, None when nothing was answered."""
        try:
            answer = await resolver.resolve(name, self._config.type, search=True)
        except dns.resolver.NoAnswer:
            self._parts.good(name, ())  # the name is there and has no such record: an empty list
            return None
        except (dns.exception.DNSException, OSError, UnicodeError) as error:
            self._parts.bad(name, self._explained(name, error))
            return None
        self._parts.good(name, (self._listed(record) for record in answer))
        return float(answer.rrset.ttl) if answer.rrset is not None else None

    def _listed(self, record: dns.rdata.Rdata) -> Listed:
        if self._config.type == "SRV":
            host, port = record.target.to_text(omit_final_dot=True), record.port  # type: ignore[attr-defined]
        else:
            host, port = record.address, self._config.port  # type: ignore[attr-defined]
        host = f"[{host}]" if ":" in host else host
        return Listed(f"{self._config.scheme}://{host}:{port}")

    def _explained(self, name: str, error: Exception) -> DiscoveryError:
        what = f"{self._config.type} of {name}"
        if isinstance(error, dns.resolver.NXDOMAIN):
            return DiscoveryError(f"{what}: the name does not exist", remedy="correct the name")
        if isinstance(error, dns.exception.Timeout):
            words = f"{what}: no answer in {self._config.timeout_seconds:g} s"
            return DiscoveryError(words, state=HealthState.TIMEOUT, remedy="look at the name servers")
        return DiscoveryError(f"{what}: {str(error)[:200]}", remedy="look at the name servers")


def build(config: Config, context: DiscoveryContext) -> Dns:
    """Return the discovery."""
    return Dns(config)
