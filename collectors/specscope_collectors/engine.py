"""What the collectors must know of an engine: one object ``ENGINE`` in ``sources/<name>/engine.py``.

Nothing else has to know of an engine: `specscope_collectors.engines` finds it by its folder, and a target's
engine is told by what the target answers on ``/metrics``, not by configuration.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol, TypeVar

import msgspec

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.fetch import Answer
from specscope_collectors.finding import Finding
from specscope_collectors.identity import Identity
from specscope_collectors.observations import Launch, Level, SourceHealth

T = TypeVar("T")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says about itself, without secrets."""

    identity: Identity
    launch: Launch
    """With neither key, time nor reason: those depend on what was known before."""


@dataclass(frozen=True, slots=True)
class InfoReading:
    """``told`` is None when the engine did not say what it is."""

    health: SourceHealth
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class LoadsReading:
    """What an engine says of its present load, beside its metrics."""

    health: SourceHealth
    levels: list[Level] = field(default_factory=list)
    was_read: bool = False


class Ask(Protocol):
    """How an engine's further endpoints are asked."""

    @property
    def api_key(self) -> str | None:
        """The key that is sent; it must not be stored."""
        ...

    async def get(self, path: str) -> tuple[Answer, int]:
        """Return what ``path`` answers (small bodies only), and when (epoch ms)."""
        ...

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run ``work`` beside the event loop."""
        ...


def prefixed(names: Iterable[frozenset[str]], prefixes: Iterable[str]) -> frozenset[str]:
    """Return all names of several sets, each with every prefix."""
    return frozenset(prefix + name for prefix, several in product(prefixes, names) for name in several)


class Engine(Protocol):
    """One kind of server that can be watched."""

    @property
    def name(self) -> str:
        """As in `Launch.engine`, e.g. ``sglang``."""
        ...

    @property
    def title(self) -> str:
        """As users write it, e.g. ``SGLang``."""
        ...

    @property
    def source(self) -> str:
        """Source under which the health of ``/metrics`` is reported: the folder's name."""
        ...

    @property
    def prefix(self) -> str:
        """What its metric names begin with, e.g. ``sglang:``."""
        ...

    @property
    def wanted(self) -> frozenset[str]:
        """Names of the samples that `map` uses."""
        ...

    @property
    def telling(self) -> frozenset[str]:
        """Names of the samples by which it can be told how new the engine is."""
        ...

    @property
    def metrics_off_remedy(self) -> str:
        """What to do when ``/metrics`` does not exist."""
        ...

    @property
    def start_evidence(self) -> frozenset[str]:
        """Settings in `Launch.config` that differ between two starts of the same configuration."""
        ...

    def claims(self, names: Collection[str]) -> bool:
        """Tell whether this engine wrote an exposition with samples of these names."""
        ...

    def map(self, exposition: Exposition, *, adaptive: bool) -> Mapped:
        """Return the canonical series; ``adaptive``: the launch is known to change its draft depth."""
        ...

    async def info(self, ask: Ask) -> InfoReading:
        """Ask the engine what it is."""
        ...

    async def loads(self, ask: Ask, mapped: Mapped | None, launch: Launch | None) -> LoadsReading | None:
        """Ask for the present load, without what ``mapped`` gives; None if the engine offers nothing more."""
        ...

    def missing(self, mapped: Mapped, launch: Launch | None) -> dict[str, str]:
        """Return what cannot be seen → how to turn it on. ``launch`` None: only what the metrics show."""
        ...

    def findings(self, mapped: Mapped | None, launch: Launch | None) -> list[Finding]:
        """Return what is worth saying to who asks what can be seen, besides `missing`."""
        ...
