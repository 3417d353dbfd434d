"""What users of the data must know about a spool: what was lost, and when it is in trouble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from specscope_collectors.clock import Monotonic
from specscope_collectors.observations import Target
from specscope_collectors.spool_memory import Waiting

SAY_EVERY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Becomes an `Event`."""

    kind: str
    message: str
    target: Target | None = None
    """The server that it is about; None = the collector itself."""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Lost:
    batches: int = 0
    from_ms: int = 0
    to_ms: int = 0

    def add(self, time_ms: int) -> None:
        self.from_ms = min(self.from_ms, time_ms) if self.batches else time_ms
        self.to_ms = max(self.to_ms, time_ms) if self.batches else time_ms
        self.batches += 1


class Losses:
    """Gathers what is dropped, so that what is said about it does not fill a spool that is full already."""

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self._lost: dict[tuple[Target, str], _Lost] = {}
        self._next = 0.0

    def add(self, dropped: Sequence[Waiting], why: str) -> None:
        """Count batches that are lost."""
        for each in dropped:
            self._lost.setdefault((each.entry.target, why), _Lost()).add(each.time_ms)

    def take(self, *, at_once: bool = False) -> list[Notice]:
        """Return a notice for each server concerned; nothing when the last ones were not long ago."""
        if not self._lost or (self._monotonic() < self._next and not at_once):
            return []
        self._next = self._monotonic() + SAY_EVERY_SECONDS
        lost, self._lost = self._lost, {}
        return [_notice(target, why, each) for (target, why), each in lost.items()]


def _notice(target: Target, why: str, lost: _Lost) -> Notice:
    message = (
        f"{lost.batches} batches were dropped before they reached this server, because {why}: "
        f"measurements of {_words(lost.from_ms)} to {_words(lost.to_ms)} are missing"
    )
    detail = {"batches": lost.batches, "from_ms": lost.from_ms, "to_ms": lost.to_ms}
    return Notice("spool_dropped", message, target, detail)


def _words(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
