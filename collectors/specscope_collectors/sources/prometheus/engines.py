"""Which metrics of which engine are looked for in a Prometheus, and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.exposition.table import DEMO_MARKER, RANK_LABELS
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import PREFIXES, RAW_INDEX
from specscope_collectors.sources.sglang_metrics.version import CAME_WITH

UP = "up"
STARTED = "process_start_time_seconds"
BESIDE = frozenset({UP, STARTED, DEMO_MARKER})
"""What is asked for beside the engine's own metrics."""

ENGINE_LABELS = frozenset({
    *RANK_LABELS, "model_name", "engine_type", "pid", "le", "priority", "mode", "category", "is_streaming",
    "stage", "phase", "cache_source", "engine",
})  # fmt: skip
"""Labels that engines write themselves: on their series these are never taken for Prometheus' own."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """One engine whose metrics can be read."""

    name: str
    pattern: str
    """Regular expression of its metric names."""
    names: frozenset[str]
    """Names that are asked for: what is mapped, and what tells the version."""
    mapped: frozenset[str]
    read: Callable[[Exposition], Mapped]


SGLANG = EngineKind(
    name="sglang",
    pattern="sglang[:_].+",
    names=frozenset(RAW_INDEX)
    | {prefix + name for prefix in PREFIXES for names in CAME_WITH.values() for name in names},
    mapped=frozenset(RAW_INDEX),
    read=map_exposition,
)
