"""Which engine version wrote a set of metrics, told by names that came with it.

The answer means "this version or newer": spec gauges are absent until the engine's first log tick, so each
version is known by several names, some written at start-up.
"""

from __future__ import annotations

from collections.abc import Collection

from specscope_collectors.sources.sglang_metrics.table import ENGINE_VERSIONS, PREFIXES, RAW_INDEX

CAME_WITH: dict[str, frozenset[str]] = {
    "0.5.23": frozenset(
        {
            "spec_cap_length",
            "scheduler_stage_seconds_total",
            "weight_memory_usage_gb",
            "startup_time_seconds",
            "request_time_per_output_token_seconds_count",
        }
    ),
    "0.5.15": frozenset(
        {"spec_num_steps", "spec_verify_calls_total", "page_size", "kv_used_tokens", "fwd_occupancy"}
    ),
    "0.5.8": frozenset(
        {"spec_accept_rate", "realtime_tokens_total", "decode_sum_seq_lens", "process_cpu_seconds_total"}
    ),
    "0.5.2": frozenset({"num_paused_reqs", "swa_token_usage", "utilization"}),
}
"""Version → raw names (without prefix) that no older known version writes."""


def version_of(names: Collection[str], *, has_ranks: bool) -> str | None:
    """Return the oldest of `ENGINE_VERSIONS` that may have written ``names``; None if they are no engine's.

    ``has_ranks``: some series carries ``tp_rank``, which 0.4.6 does not write.
    """
    bare = {name[len(prefix) :] for name in names for prefix in PREFIXES if name.startswith(prefix)}
    for version in reversed(ENGINE_VERSIONS):
        if bare & CAME_WITH.get(version, frozenset()):
            return version
    if not any(name in RAW_INDEX for name in names):
        return None
    return "0.5.2" if has_ranks else "0.4.6"
