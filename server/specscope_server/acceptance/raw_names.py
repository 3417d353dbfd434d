"""Under which names the engines publish what numbers are made of."""

from __future__ import annotations

from collections.abc import Mapping

from specscope_server.kit.versions import LOG_LINES

RAW_NAMES: Mapping[str, Mapping[str, str]] = {
    "sglang": {
        "spec.accept_length": "sglang:spec_accept_length",
        "spec.engine_accept_rate": "sglang:spec_accept_rate",
        "spec.verify_calls": "sglang:spec_verify_calls_total",
        "tokens.generated": "sglang:generation_tokens_total",
        "requests.finished": "sglang:num_requests_total",
        "tokens.decoded": "sglang:realtime_tokens_total{mode=decode}",
        "throughput.generated": "sglang:gen_throughput",
        "requests.running": "sglang:num_running_reqs",
        "requests.queued": "sglang:num_queue_reqs",
        "spec.num_steps": "sglang:spec_num_steps",
        "spec.num_draft_tokens": "sglang:spec_num_draft_tokens",
    },
    "vllm": {
        "spec.cycles": "vllm:spec_decode_num_drafts_total",
        "spec.drafts_proposed": "vllm:spec_decode_num_draft_tokens_total",
        "spec.drafts_accepted": "vllm:spec_decode_num_accepted_tokens_total",
        "tokens.emitted": "vllm:generation_tokens_total",
        "requests.finished": "vllm:request_success_total",
        "requests.running": "vllm:num_requests_running",
        "requests.queued": "vllm:num_requests_waiting",
    },
}
"""Engine → metric → name in its ``/metrics``."""
DERIVED: Mapping[str, Mapping[str, str]] = {
    "sglang": {
        "spec.cycles": "the probe's specscope_cycles_total{view=requests}",
        "spec.drafts_proposed": "the probe's specscope_drafts_proposed_total{view=requests}",
        "spec.drafts_accepted": "the probe's specscope_drafts_accepted_total{view=requests}",
    },
    "vllm": {
        "spec.num_steps": "draft positions of vllm:spec_decode_num_accepted_tokens_per_pos_total",
        "spec.num_draft_tokens": "draft positions of vllm:spec_decode_num_accepted_tokens_per_pos_total",
    },
}
"""Engine → metric → what it is told from, where no name says it."""


LOG_FIELDS: Mapping[str, str] = {
    "spec.accept_length": "accept len",
    "spec.engine_accept_rate": "accept rate",
    "throughput.generated": "gen throughput (token/s)",
    "requests.running": "#running-req",
    "requests.queued": "#queue-req",
}
"""Metric → field of SGLang's Decode lines."""


def raw_name(engine: str, metric: str, version_source: str | None = None) -> str:
    """Return the engine's name of a metric; ours where it has none (the probe).

    ``version_source``: of a launch that is known from its log alone, the log's own words.
    """
    if engine == "sglang" and version_source == LOG_LINES and metric in LOG_FIELDS:
        return f"“{LOG_FIELDS[metric]}” in the log"
    named = RAW_NAMES.get(engine, {}).get(metric) or DERIVED.get(engine, {}).get(metric)
    return named or metric


def who_counts_drafts(engine: str) -> str:
    """Return who counts an engine's accepted drafts as they happen."""
    if "spec.drafts_accepted" in DERIVED.get(engine, {}):
        return "Specscope's probe inside the engine"
    return "the engine itself"
