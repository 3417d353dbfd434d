"""What a log held, in numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from specscope_collectors.sources.sglang_log.ranks import Rank
from specscope_collectors.sources.sglang_log.rate_definition import Decision

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_KEPT = 20_000


@dataclass(slots=True)
class Sampled:
    """An even selection of at most `MAX_KEPT` values, whose median stands for all."""

    count: int = 0
    kept: array[float] = field(default_factory=lambda: array("d"))
    stride: int = 1

    def add(self, value: float) -> None:
        """Note one value."""
        if self.count % self.stride == 0:
            self.kept.append(value)
            if len(self.kept) > MAX_KEPT:
                self.kept, self.stride = self.kept[::2], 2 * self.stride
        self.count += 1

    def add_all(self, values: NDArray[np.float64]) -> None:
        """Note many values, in their order."""
        chosen = values[-self.count % self.stride :: self.stride]
        if len(self.kept) + len(chosen) > MAX_KEPT:
            for value in values.tolist():
                self.add(value)
        else:
            self.kept.frombytes(chosen.tobytes())
            self.count += len(values)

    @property
    def median(self) -> float | None:
        """Return the median; None without values."""
        return median(self.kept) if self.kept else None


@dataclass(slots=True)
class RankSummary:
    """What one rank printed."""

    decode_lines: int = 0
    prefill_lines: int = 0
    accept_length: Sampled = field(default_factory=Sampled)
    cycles_per_second: Sampled = field(default_factory=Sampled)
    """Throughput / (τ × running requests) of each line that has all three."""
    is_mirror: bool = False


@dataclass(slots=True)
class LaunchSummary:
    """One launch of the log."""

    key: str
    time_ms: int
    reason: str
    model: str | None
    algorithm: str | None
    draft_tokens: int | None
    definition: Decision | None = None
    ranks: dict[Rank, RankSummary] = field(default_factory=dict)


@dataclass(slots=True)
class Summary:
    """One log (or several parts of it, read in order)."""

    bytes_read: int = 0
    lines: int = 0
    decode_lines: int = 0
    prefill_lines: int = 0
    mirror_lines: int = 0
    """Status lines of ranks that print what their leader prints."""
    cut_lines: int = 0
    """Status lines without an end, of which what was whole is used."""
    refused: Counter[str] = field(default_factory=Counter)
    """Reason → lines or values."""
    events: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    """Which versions write decode lines like these → lines."""
    launches: list[LaunchSummary] = field(default_factory=list)
    further_launches: int = 0
    """Launches that are counted only."""
    levels: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    damage: list[str] = field(default_factory=list)

    def saw(self, time_ms: int) -> None:
        """Widen the time span."""
        self.first_ms = time_ms if self.first_ms is None else min(self.first_ms, time_ms)
        self.last_ms = time_ms if self.last_ms is None else max(self.last_ms, time_ms)
