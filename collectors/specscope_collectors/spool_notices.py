"""What users of the data must know about a spool: what was lost, and when it is in trouble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from specscope_collectors.observations import Target
from specscope_collectors.spool_memory import Waiting


@dataclass(frozen=True, slots=True)
class Notice:
    """Becomes an `Event`."""

    kind: str
    message: str
    target: Target | None = None
    """The server that it is about; None = the collector itself."""
    detail: dict[str, Any] = field(default_factory=dict)


def dropped_notices(dropped: Sequence[Waiting], why: str) -> Iterator[Notice]:
    """Yield one notice for each server of which batches were lost, with how many and of which time."""
    by_target: dict[Target, list[Waiting]] = {}
    for each in dropped:
        by_target.setdefault(each.entry.target, []).append(each)
    for target, lost in by_target.items():
        times = [each.time_ms for each in lost]
        detail = {"batches": len(lost), "from_ms": min(times), "to_ms": max(times)}
        message = (
            f"{len(lost)} batches were dropped before they reached this server, because {why}: "
            f"measurements of {_words(min(times))} to {_words(max(times))} are missing"
        )
        yield Notice("spool_dropped", message, target, detail)


def _words(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
