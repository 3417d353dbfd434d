"""Raw metric names of SGLang, per engine version, and how each becomes a canonical metric.

The engine's ``/v1/loads?format=prometheus`` also uses ``sglang_`` but gives ``sglang_spec_accept_length``
another meaning (mean since start). This table is for ``/metrics`` only.
"""

from __future__ import annotations

from collections.abc import Mapping

from specscope_collectors.exposition.table import (
    ALWAYS_SUMMED,
    DEMO_MARKER,
    HISTOGRAM_SUFFIXES,
    RANK_LABELS,
    Row,
    Table,
)
from specscope_collectors.sources.sglang_metrics.probe_table import probe_rows

__all__ = [
    "DEMO_MARKER",
    "ENGINE_VERSIONS",
    "HISTOGRAM_SUFFIXES",
    "OTHER_SOURCES",
    "PREFIXES",
    "RANK_LABELS",
    "RAW_INDEX",
    "ROWS",
    "TABLE",
    "WANTED",
    "Row",
]

ENGINE_VERSIONS = ("0.4.6", "0.5.2", "0.5.8", "0.5.15", "0.5.23")
"""Versions whose metric sets are known, oldest first; versions in between resemble the one before."""

PREFIXES = ("sglang:", "sglang_")

NO_WINDOW_YET = "0 before the first log window, or without speculation"


def _in_all(name: str) -> tuple[str | None, ...]:
    return (name,) * len(ENGINE_VERSIONS)


def _since(version: str, name: str, before: tuple[str | None, ...] = ()) -> tuple[str | None, ...]:
    """Raw names with ``name`` from ``version`` on and ``before`` (padded with None) in front."""
    first = ENGINE_VERSIONS.index(version)
    padded = (None,) * (first - len(before)) + before
    return padded + (name,) * (len(ENGINE_VERSIONS) - first)


def _never_seen(reason: str, *versions: str) -> dict[str, str]:
    return dict.fromkeys(versions, reason)


_BY_MODE = ALWAYS_SUMMED | {"mode"}
_NEEDS_EVENT = "the label set appears with the first such event; the captured engines had none"
_NO_MONITOR = "written by the process monitor of a running server, which the generated captures did not run"

_COUNTERS = (
    Row("spec.verify_calls", _since("0.5.15", "spec_verify_calls_total")),
    Row("tokens.generated", _in_all("generation_tokens_total")),
    Row("tokens.prompt", _in_all("prompt_tokens_total")),
    Row("tokens.cached", _in_all("cached_tokens_total")),
    Row(
        "tokens.decoded",
        _since("0.5.8", "realtime_tokens_total"),
        sums_away=_BY_MODE,
        where=("mode", "decode"),
    ),
    Row(
        "tokens.prefill_computed",
        _since("0.5.8", "realtime_tokens_total"),
        sums_away=_BY_MODE,
        where=("mode", "prefill_compute"),
    ),
    Row(
        "tokens.prefill_cached",
        _since("0.5.8", "realtime_tokens_total"),
        sums_away=_BY_MODE,
        where=("mode", "prefill_cache"),
    ),
    Row("requests.finished", _in_all("num_requests_total")),
    Row(
        "requests.aborted",
        _since("0.5.2", "num_aborted_requests_total"),
        not_in_fixture=_never_seen(_NEEDS_EVENT, "0.5.2", "0.5.8", "0.5.15", "0.5.23"),
    ),
    # 0.5.2 writes the running total into a gauge; it grows like a counter and is read as one.
    Row(
        "requests.retracted",
        _since("0.5.8", "num_retracted_requests_total", before=("total_retracted_reqs",)),
        not_in_fixture=_never_seen(_NEEDS_EVENT, "0.5.8", "0.5.15", "0.5.23"),
    ),
    # 0.5.8 times a whole worker call, so its forward_decode holds draft, verify and draft-extend together;
    # from 0.5.15 on the runners are timed one by one. Categories stay as printed: they are not the same.
    Row(
        "time.forward",
        _since("0.5.15", "forward_execution_seconds_total", before=("gpu_execution_seconds_total",)),
    ),
    Row("time.scheduler_stage", _since("0.5.23", "scheduler_stage_seconds_total")),
    Row("time.scheduler_idle", _since("0.5.23", "scheduler_idle_seconds_total")),
    Row(
        "time.process_cpu",
        _since("0.5.8", "process_cpu_seconds_total"),
        not_in_fixture=_never_seen(_NO_MONITOR, "0.5.15"),
    ),
    Row(
        "time.process_cpu",
        _since("0.5.23", "scheduler_process_cpu_seconds_total"),
        adds=(("component", "scheduler"),),
    ),
    Row("engine.graph_passes", _since("0.5.8", "cuda_graph_passes_total")),
)

_NO_DSPARK = "0 without DSpark"

_LEVELS = (
    Row("spec.accept_length", _in_all("spec_accept_length"), zero_means=NO_WINDOW_YET),
    # A rate of 0 is real beside an accept length of 1; `spec_gauges` decides.
    Row("spec.engine_accept_rate", _since("0.5.8", "spec_accept_rate")),
    Row("spec.num_steps", _since("0.5.15", "spec_num_steps")),
    Row("spec.num_draft_tokens", _since("0.5.15", "spec_num_draft_tokens"), zero_means=NO_WINDOW_YET),
    Row("spec.cap_length", _since("0.5.23", "spec_cap_length"), zero_means=_NO_DSPARK),
    Row("spec.block_accept_length", _since("0.5.23", "spec_block_accept_length"), zero_means=_NO_DSPARK),
    Row("throughput.generated", _in_all("gen_throughput")),
    Row("requests.running", _in_all("num_running_reqs")),
    Row("requests.queued", _in_all("num_queue_reqs")),
    Row("kv.used_tokens", _in_all("num_used_tokens")),
    Row("kv.max_tokens", _since("0.5.8", "max_total_num_tokens")),
    Row("kv.usage", _in_all("token_usage"), at_most=1.0),
    Row("cache.hit_rate", _in_all("cache_hit_rate"), at_most=1.0),
    # A quotient of two measured times: it may exceed 1 a little when the device never rests, so no limit.
    Row("engine.forward_occupancy", _since("0.5.15", "fwd_occupancy"), divisor=100.0, is_nan_normal=True),
    Row("engine.sum_sequence_lengths", _since("0.5.8", "decode_sum_seq_lens")),
    Row("memory.weights", _since("0.5.23", "weight_memory_usage_gb")),
    Row("memory.kv_cache", _since("0.5.23", "kv_cache_memory_usage_gb")),
    Row(
        "memory.graphs",
        _since("0.5.23", "graph_memory_usage_gb"),
        sums_away=ALWAYS_SUMMED | {"phase"},
    ),
)

_HISTOGRAMS = (
    Row("latency.time_to_first_token", _in_all("time_to_first_token_seconds")),
    Row("latency.inter_token", _in_all("inter_token_latency_seconds")),
    Row("latency.time_per_output_token", _since("0.5.23", "request_time_per_output_token_seconds")),
    Row("latency.end_to_end", _in_all("e2e_request_latency_seconds")),
    Row("latency.queue", _since("0.5.8", "queue_time_seconds")),
)

ROWS: tuple[Row, ...] = (*_COUNTERS, *_LEVELS, *_HISTOGRAMS)

OTHER_SOURCES: Mapping[str, str] = {
    "spec.lifetime_accept_length": "a mean since start, told by /server_info and /v1/loads only",
    "engine.max_running_requests": "a limit, told by /server_info and /v1/loads only",
}
"""Catalogued metric → why no row above produces it (``scrape.*`` is made by the collector itself)."""


_GUESTS = probe_rows(len(ENGINE_VERSIONS), first=ENGINE_VERSIONS.index("0.5.8"))

TABLE = Table("sglang", ROWS, PREFIXES, ENGINE_VERSIONS, _GUESTS)

RAW_INDEX = TABLE.index
"""Raw sample name as it stands in the exposition → what it is used for."""

WANTED = TABLE.wanted
"""Sample names worth parsing; every other line is only glanced at."""
