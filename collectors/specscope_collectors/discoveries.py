"""Ways to find servers, found by convention: every module under ``discovery/``.

A module there has

* ``Config``, a frozen struct that derives from `Discover`: the keys of a ``[[discover]]`` table whose
  ``kind`` is the module's name, and
* ``build(config, context) -> Discovery``.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import msgspec

from specscope_collectors import discovery
from specscope_collectors.access import Access
from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import HealthState


class Discover(Access, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that every `[[discover]]` table has."""

    name: str | None = None
    """What the Sources page calls it; by default what is asked."""
    interval_seconds: float = 30.0
    """Between two looks."""
    grace_seconds: float = 60.0
    """For which a server that is no longer listed is still watched: lists flap."""
    max_targets: int = 1_000
    """More servers than this are refused and counted."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Kept with each launch of the servers found here, beside what the discovery says of them."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not 1 <= self.interval_seconds < math.inf:
            raise ValueError(f"interval_seconds = {self.interval_seconds}: at least 1, and finite")
        if not self.grace_seconds >= 0:
            raise ValueError(f"grace_seconds = {self.grace_seconds}: at least 0")
        if not self.max_targets >= 1:
            raise ValueError(f"max_targets = {self.max_targets}: at least 1")


@dataclass(frozen=True, slots=True)
class Listed:
    """One server as a discovery lists it. Untrusted."""

    url: str
    """As ``--watch`` takes it."""
    name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A list that was read."""

    listed: tuple[Listed, ...]
    refused: tuple[str, ...] = ()
    """Entries that were not understood, in words."""
    next_seconds: float | None = None
    """When to look again, if that is sooner than the interval."""
    keeps: str = ""
    """Why a part of the list is an older one, in words; empty: it is all new."""


class DiscoveryError(Exception):
    """No list could be read: the last good one is kept. The message names the input and the reason."""

    def __init__(
        self, message: str, *, state: HealthState = HealthState.UNREACHABLE, remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.state = state
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryContext:
    """What every discovery is given."""

    options: CollectorOptions


class Discovery(Protocol):
    """One place to look for servers."""

    @property
    def asked(self) -> str:
        """What is asked, for people: a path, a name, a URL without credentials."""
        ...

    @property
    def keep_seconds(self) -> float | None:
        """For how long a list outlives errors; None = until there is another one."""
        ...

    async def look(self) -> Answer:
        """Return the list as of now. Raises `DiscoveryError`."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class DiscoveryKind:
    """One way to find servers."""

    name: str
    config: type[Any]
    build: Callable[[Any, DiscoveryContext], Discovery]


@cache
def discovery_kinds() -> dict[str, DiscoveryKind]:
    """Return the ways to find servers by their module's name."""
    names = sorted(module.name for module in pkgutil.iter_modules(discovery.__path__))
    return {name: _kind(name) for name in names}


def _kind(name: str) -> DiscoveryKind:
    module = importlib.import_module(f"{discovery.__name__}.{name}")
    return DiscoveryKind(name, module.Config, module.build)
