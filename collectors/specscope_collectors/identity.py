"""When measurements belong to another launch: a new process, or another configuration of the same one.

Three kinds of evidence: what the engine says about itself (`Identity`), counters that all fell, and gaps in
which a restart may have happened unseen.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one launch from another."""

    source: str
    """``server_info`` or ``metric_names``, as `Launch.version_source`."""
    process: str
    """Fingerprint of this start of the process."""
    configuration: str
    """Fingerprint of the resolved configuration."""
    certain: bool = False
    """True when ``process`` cannot be the same for two starts (it holds measured start-up times)."""

    def key(self, salt: str) -> str:
        """Return the launch key; ``salt`` tells restarts apart that look alike."""
        return digest([self.process, self.configuration, salt])[:32]


class Change(StrEnum):
    """What a scrape says about the launch."""

    SAME = "same"
    FIRST = "launch"
    RESTART = "restart"
    CONFIGURATION = "config_change"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of the process besides its identity."""

    fell: int = 0
    compared: int = 0
    gap: bool = False
    """There was no good scrape directly before this one."""
    started_anew: bool = False
    """The process says that it started at another time than the one before."""

    @property
    def all_fell(self) -> bool:
        """Every counter that could be compared is lower than before."""
        return 0 < self.compared == self.fell

    @property
    def allows_restart(self) -> bool:
        """A process takes longer to start than the time between two good scrapes without a fall."""
        return self.gap or self.fell > 0 or self.compared == 0


def judge(known: Identity | None, seen: Identity, evidence: Evidence) -> Change:
    """Return whether ``seen`` is ``known``, its restart, or another configuration of the same process."""
    if known is None:
        return Change.FIRST
    if evidence.started_anew:
        return Change.RESTART
    if known.source != seen.source:
        # what the engine says became readable, or is no longer: no restart in itself
        if evidence.all_fell:
            return Change.RESTART
        return Change.CONFIGURATION if seen.source == "server_info" else Change.SAME
    if known.process != seen.process and evidence.allows_restart:
        return Change.RESTART
    if evidence.all_fell and not (seen.certain and known.process == seen.process):
        return Change.RESTART
    if known.process != seen.process or known.configuration != seen.configuration:
        return Change.CONFIGURATION
    return Change.SAME


def digest(value: Any) -> str:
    """Return a stable hex fingerprint of a JSON value (keys sorted)."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
