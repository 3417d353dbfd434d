"""What one process collects: servers to watch, jobs to do, and where to look for more servers."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specscope_collectors.config import CollectorOptions
from specscope_collectors.jobs import JobKind
from specscope_collectors.observations import Target

if TYPE_CHECKING:
    from specscope_collectors.collect_file import CollectFile
    from specscope_collectors.discoveries import DiscoveryKind

COLLECTOR_SCHEME = "collector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """One server to watch, and how."""

    target: Target
    options: CollectorOptions
    labels: Mapping[str, str] = field(default_factory=dict)
    """Said by the user or a discovery; kept with each launch."""
    origin: str = field(default="", compare=False)
    """Where the server is named: the file, ``--watch``, or the name of a discovery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """One ``[[<source>]]`` table."""

    kind: JobKind
    config: Any
    where: str = field(compare=False)
    options: CollectorOptions | None = None
    """How it reads servers; None = as everything else in the process."""
    """File and table, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryPlan:
    """One ``[[discover]]`` table."""

    kind: DiscoveryKind
    config: Any
    options: CollectorOptions
    """How to read the servers that it finds."""
    where: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectPlan:
    """Everything that one process collects."""

    name: str = field(default_factory=socket.gethostname)
    """Of the collector, as shown on the Sources page."""
    options: CollectorOptions = field(default_factory=CollectorOptions)
    targets: tuple[Watching, ...] = ()
    jobs: tuple[JobPlan, ...] = ()
    discoveries: tuple[DiscoveryPlan, ...] = ()
    file: CollectFile | None = None
    """What to watch for changes; None when nothing was read from a file."""

    @property
    def collector(self) -> Target:
        """The collector itself, as what its own health is reported of."""
        return collector_target(self.name)


def collector_target(name: str) -> Target:
    """Return the collector itself as a target: health of files, discoveries and spool is reported of it."""
    return Target(name=f"{COLLECTOR_SCHEME}:{name}", base_url=f"{COLLECTOR_SCHEME}://{name}")


def watching_all(targets: tuple[Target, ...], options: CollectorOptions) -> tuple[Watching, ...]:
    """Return ``targets`` of the command line, all read alike."""
    return tuple(Watching(target=target, options=options, origin="--watch") for target in targets)
