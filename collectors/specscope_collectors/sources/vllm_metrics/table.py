"""Raw metric names of vLLM, per engine version, and how each becomes a canonical metric.

Names here have no prefix and are spelled as Prometheus' client writes them: counters end in ``_total``. What
other exporters write without it, and superseded names, `renaming` brings to this spelling first.

Facts (vLLM): the V0 engine adds the *running totals* of drafts to its counters every 5 seconds, so that their
growth counts nothing; only its two gauges can be read. The V1 engine counts each draft once.
"""

from __future__ import annotations

from collections.abc import Mapping

from specscope_collectors.catalogue import Kind
from specscope_collectors.exposition.table import Row, Table

ENGINE_VERSIONS = ("0.5", "0.8", "0.9", "0.10")
"""Known metric sets by the oldest version that may write them: V0; V1; V1 with its KV cache and prefix cache
renamed; V1 with the inter-token latency renamed."""

PREFIXES = ("vllm:", "vllm_")


def _in_all(name: str) -> tuple[str | None, ...]:
    return (name,) * len(ENGINE_VERSIONS)


def _since(version: str, name: str, before: str | None = None) -> tuple[str | None, ...]:
    first = ENGINE_VERSIONS.index(version)
    return (before,) * first + (name,) * (len(ENGINE_VERSIONS) - first)


def _v0_only(name: str) -> tuple[str | None, ...]:
    return (name, *[None] * (len(ENGINE_VERSIONS) - 1))


_COUNTERS = (
    Row("spec.cycles", _since("0.8", "spec_decode_num_drafts_total")),
    Row("spec.drafts_proposed", _since("0.8", "spec_decode_num_draft_tokens_total")),
    Row("spec.drafts_proposed", _since("0.10", "spec_decode_num_draft_tokens_per_pos_total")),
    Row("spec.drafts_accepted", _since("0.8", "spec_decode_num_accepted_tokens_total")),
    Row("spec.drafts_accepted", _since("0.8", "spec_decode_num_accepted_tokens_per_pos_total")),
    Row("tokens.emitted", _in_all("generation_tokens_total")),
    Row("tokens.prompt", _in_all("prompt_tokens_total")),
    Row("tokens.prefill_cached", _since("0.9", "prefix_cache_hits_total")),
    Row("requests.finished", _in_all("request_success_total")),
    Row(
        "requests.aborted",
        _in_all("request_success_total"),
        where=("finished_reason", "abort"),
        sums_away=frozenset({"finished_reason"}),
    ),
    Row("requests.retracted", _in_all("num_preemptions_total")),
)

_LEVELS = (
    Row(
        "spec.lifetime_draft_acceptance",
        _v0_only("spec_decode_draft_acceptance_rate"),
        is_nan_normal=True,
        at_most=1.0,
    ),
    Row("spec.lifetime_efficiency", _v0_only("spec_decode_efficiency"), is_nan_normal=True, at_most=1.0),
    Row("requests.running", _in_all("num_requests_running")),
    Row("requests.queued", _in_all("num_requests_waiting")),
    Row("kv.usage", _since("0.9", "kv_cache_usage_perc", before="gpu_cache_usage_perc"), at_most=1.0),
)

_HISTOGRAMS = (
    Row("latency.time_to_first_token", _in_all("time_to_first_token_seconds")),
    Row(
        "latency.inter_token",
        _since("0.10", "inter_token_latency_seconds", before="time_per_output_token_seconds"),
    ),
    Row("latency.time_per_output_token", _since("0.10", "request_time_per_output_token_seconds")),
    Row("latency.end_to_end", _in_all("e2e_request_latency_seconds")),
    Row("latency.queue", _in_all("request_queue_time_seconds")),
)

TABLE = Table("vllm", (*_COUNTERS, *_LEVELS, *_HISTOGRAMS), PREFIXES, ENGINE_VERSIONS)

TOTALS = frozenset(
    name for row in TABLE.rows if row.kind is Kind.INCREMENT for name in row.names if name.endswith("_total")
)
"""Counters, which other exporters write without ``_total``."""

SUPERSEDED: Mapping[str, str] = {
    "gpu_cache_usage_perc": "kv_cache_usage_perc",
    "time_per_output_token_seconds": "inter_token_latency_seconds",
    "spec_decode_num_draft_tokens_total": "spec_decode_num_draft_tokens_per_pos_total",
    "spec_decode_num_accepted_tokens_total": "spec_decode_num_accepted_tokens_per_pos_total",
}
"""Family → family that says the same, or more, wherever both stand; then only the second is taken."""

STARTED = "process_start_time_seconds"
"""Written by Prometheus' client in the engine's process, unless several processes share the work."""

V0_FAMILIES = frozenset({
    "spec_decode_draft_acceptance_rate", "spec_decode_efficiency", "spec_decode_num_emitted_tokens_total",
})  # fmt: skip
"""Families that only the V0 engine writes."""

CAME_WITH: Mapping[str, frozenset[str]] = {
    "0.10": frozenset({"inter_token_latency_seconds_count"}),
    "0.9": frozenset({"kv_cache_usage_perc", "prefix_cache_queries_total"}),
    "0.8": frozenset({"spec_decode_num_drafts_total", "gpu_prefix_cache_queries_total"}),
}
"""Version → names (without prefix) that no older known set has."""

NOT_MAPPED: Mapping[str, str] = {
    "spec_decode_num_emitted_tokens_total": "V0 adds running totals to it: growth counts nothing",
    "num_requests_swapped": "V0 only, and no queue of its own since",
    "cpu_cache_usage_perc": "V0 only: the swap space",
    "gpu_prefix_cache_hit_rate": "V0 only: a ratio without its counts",
    "cpu_prefix_cache_hit_rate": "V0 only: a ratio without its counts",
    "gpu_prefix_cache_queries_total": "superseded by prefix_cache_queries",
    "gpu_prefix_cache_hits_total": "superseded by prefix_cache_hits",
    "prefix_cache_queries_total": "the denominator of the prefix cache's hit rate, which nothing here shows",
    "time_in_queue_requests": "V0 only: a copy of request_queue_time_seconds",
    "model_forward_time_milliseconds": "V0 only, and not by stage",
    "model_execute_time_milliseconds": "V0 only, and not by stage",
    "cache_config_info": "a constant of the launch, as labels",
    "lora_requests_info": "adapters, as labels",
    "iteration_tokens_total": "sizes of single steps",
    "request_prompt_tokens": "request sizes",
    "request_generation_tokens": "request sizes",
    "request_max_num_generation_tokens": "request parameters",
    "request_params_n": "request parameters",
    "request_params_max_tokens": "request parameters",
    "request_inference_time_seconds": "stages of a request's life, not of a cycle",
    "request_prefill_time_seconds": "stages of a request's life, not of a cycle",
    "request_decode_time_seconds": "stages of a request's life, not of a cycle",
    "time_per_prefill_token_request_seconds": "prefill alone",
}
"""Raw family name without prefix → why it is not read."""
