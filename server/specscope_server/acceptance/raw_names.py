"""Under which names the engines publish what numbers are made of."""

from __future__ import annotations

from collections.abc import Mapping

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


def raw_name(engine: str, metric: str) -> str:
    """Return the engine's name of a metric; ours where it has none (a log, the probe)."""
    named = RAW_NAMES.get(engine, {}).get(metric) or DERIVED.get(engine, {}).get(metric)
    return named or metric
