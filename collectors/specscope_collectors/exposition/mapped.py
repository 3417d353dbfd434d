"""What one answer comes to in canonical terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from specscope_collectors.exposition.parse import EXAMPLES
from specscope_collectors.increments import HistogramState, LabelPairs, SeriesKey

Rank = LabelPairs
"""Rank labels of one reporting process, e.g. ``(("dp_rank", "1"), ("tp_rank", "4"))``."""


@dataclass(slots=True)
class Mapped:
    """Canonical series of one answer, by kind, and what was noticed on the way."""

    engine: str
    """Which engine wrote it, as in `Launch.engine`."""
    counters: dict[SeriesKey, float] = field(default_factory=dict)
    """Cumulative values."""
    levels: dict[SeriesKey, float] = field(default_factory=dict)
    histograms: dict[SeriesKey, HistogramState] = field(default_factory=dict)
    """Cumulative in time, per bucket in ``le``."""
    refused: int = 0
    """Values refused in this answer, those that the parser refused included."""
    refusals: list[str] = field(default_factory=list)
    """The first few of them in words."""
    models: set[str] = field(default_factory=set)
    """Values of ``model_name``."""
    ranks: set[Rank] = field(default_factory=set)
    """Rank labels of every process that reported; empty for 0.4.6, which labels no ranks."""
    demo: bool = False
    """The demo engine wrote this."""
    version_from_metric_set: str | None = None
    """Oldest engine version that may have written these metrics; None = these are no engine's metrics."""
    started: float | None = None
    """When the process started (epoch seconds), if it says so."""
    is_truncated: bool = False
    """The answer was cut off; no series is taken from it."""

    @property
    def series(self) -> int:
        """Number of canonical series."""
        return len(self.counters) + len(self.levels) + len(self.histograms)

    def refuse(self, reason: str) -> None:
        """Count one refused value and keep the first few reasons."""
        self.refused += 1
        if len(self.refusals) < EXAMPLES:
            self.refusals.append(reason)
