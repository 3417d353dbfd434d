"""`Loads` → levels that ``/metrics`` does not already give."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from specscope_collectors.observations import Labels, Level
from specscope_collectors.sources.sglang_loads.body import Loads

# canonical metric → where in one load (section, name)
FIELDS: dict[str, tuple[str, ...]] = {
    "requests.running": ("num_running_reqs",),
    "requests.queued": ("num_waiting_reqs",),
    "kv.used_tokens": ("num_used_tokens",),
    "kv.max_tokens": ("max_total_num_tokens",),
    "kv.usage": ("token_usage",),
    "throughput.generated": ("gen_throughput",),
    "cache.hit_rate": ("cache_hit_rate",),
    "engine.max_running_requests": ("max_running_requests",),
    "spec.lifetime_accept_length": ("speculative", "accept_length"),
    "memory.weights": ("memory", "weight_gb"),
    "memory.kv_cache": ("memory", "kv_cache_gb"),
    "memory.graphs": ("memory", "graph_gb"),
}
# The schedulers fill these only with --enable-metrics and answer 0 without it, so 0 says nothing.
# An accept length of 0 means that no log window has ended (nothing accepted would be 1).
ZERO_IS_MISSING = frozenset({"throughput.generated", "cache.hit_rate", "spec.lifetime_accept_length"})


def to_levels(
    loads: Loads, *, time_ms: int, already: Collection[str], labels: Labels
) -> tuple[list[Level], int]:
    """Return levels of metrics that are not in ``already``, and how many values were refused.

    ``labels`` go on every level; ``dp_rank`` is added when there are several ranks, as in ``/metrics``.
    """
    levels: list[Level] = []
    refused = 0
    for load in loads.loads:
        own = labels | ({"dp_rank": str(load.get("dp_rank"))} if len(loads.loads) > 1 else {})
        for metric, path in FIELDS.items():
            value = None if metric in already else _value(load, path)
            if value is None or (value == 0 and metric in ZERO_IS_MISSING):
                continue
            if math.isfinite(value) and value >= 0:
                levels.append(Level(metric=metric, labels=own, time_ms=time_ms, value=float(value)))
            else:
                refused += 1
    return levels, refused


def _value(load: dict[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = load
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
