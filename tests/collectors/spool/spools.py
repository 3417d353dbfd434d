"""Spools in a folder of the test, with clocks that stand still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from specscope_collectors.observations import Batch, Increment, Observation, Target
from specscope_collectors.spool import Spool, SpoolLimits
from specscope_collectors.spool_memory import Waiting

T0 = 1_790_000_000_000
TARGET = Target(name="gpu1:30000", base_url="http://gpu1:30000")
COLLECTOR = Target(name="collector:gpu1", base_url="collector://gpu1")


@dataclass
class Times:
    """A wall clock and a monotonic one, both set by the test."""

    wall_ms: int = T0
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)

    def wall(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.seconds


def increment(value: float, time_ms: int = T0) -> Increment:
    return Increment(metric="spec.verify_calls", labels={}, time_ms=time_ms, span_ms=1_000, value=value)


def make_batch(sequence: int, collector: str = "watch:a", *more: Observation, **fields: Any) -> Batch:
    """Return a batch whose growth is its sequence."""
    defaults = {"target": TARGET, "launch_key": "l", "checkpoint": f"{collector} {sequence}".encode()}
    return Batch(
        collector_id=collector,
        sequence=sequence,
        observations=(increment(sequence, T0 + sequence * 1_000), *more),
        **{**defaults, **fields},
    )


@contextmanager
def opened(folder: Path, times: Times | None = None, **limits: int) -> Iterator[Spool]:
    """Open a spool and close it, whatever happens."""
    chosen = times or Times()
    spool = Spool(folder, SpoolLimits(**limits), chosen.wall, chosen.monotonic)
    try:
        yield spool
    finally:
        spool.close()


def decoded(waiting: Waiting) -> Batch:
    """Return the batch as it would be sent."""
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(waiting.entry.body), type=Batch)


def sent(spool: Spool) -> list[tuple[str, int]]:
    """Return (collector, sequence) of all that waits, in order, and check that bodies say the same."""
    found = []
    for waiting in spool.waiting(1_000_000, 10**12):
        batch = decoded(waiting)
        assert (batch.sequence, batch.checkpoint) == (waiting.entry.sequence, None)
        assert batch.collector_id.startswith(waiting.entry.collector_id + "#")
        found.append((waiting.entry.collector_id, waiting.entry.sequence))
    return found


def sequences(spool: Spool) -> list[int]:
    """Return the sequences of all that waits."""
    return [sequence for _, sequence in sent(spool)]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.spool"))
