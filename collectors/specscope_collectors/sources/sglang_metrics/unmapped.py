"""Metrics that SGLang writes and that are deliberately not read, each with its reason.

Nothing depends on this table but a test: every name in a captured answer is either mapped or stands here, so
a name that a new engine version adds is a decision, not an oversight.
"""

from __future__ import annotations

_BY_REASON: dict[str, tuple[str, ...]] = {
    "dead: the engine never assigns it, it is always 0": (
        "is_cuda_graph",
        "engine_startup_time",
        "engine_load_weights_time",
        "utilization",
    ),
    "dead: declared, but nothing ever observes it": ("queue_time_s", "avg_request_queue_latency"),
    "a copy of, or computable from, what is mapped": (
        "full_token_usage",
        "kv_used_tokens",
        "kv_available_tokens",
        "prefill_effective_tokens_total",
        "num_retracted_reqs",
        "num_retractions",
        "num_pages",
    ),
    "a constant of the launch, taken from /server_info": (
        "page_size",
        "context_len",
        "startup_available_gpu_memory_gb",
    ),
    "start-up cost, not serving": ("startup_time_seconds", "startup_cuda_graph_time_seconds"),
    "cache internals that say nothing about speculation": (
        "kv_evictable_tokens",
        "swa_token_usage",
        "swa_available_tokens",
        "swa_evictable_tokens",
        "swa_used_tokens",
        "mamba_usage",
        "mamba_available_tokens",
        "mamba_evictable_tokens",
        "mamba_used_tokens",
        "new_token_ratio",
    ),
    "queues and transfers of prefill-decode disaggregation": (
        "num_prefill_prealloc_queue_reqs",
        "num_prefill_bootstrap_queue_reqs",
        "num_prefill_infight_queue_reqs",
        "num_prefill_inflight_queue_reqs",
        "num_decode_prealloc_queue_reqs",
        "num_decode_transfer_queue_reqs",
        "num_decode_host_receive_queue_reqs",
        "num_decode_deferred_kv_release_reqs",
        "pending_prealloc_token_usage",
        "prealloc_full_token_usage",
        "prealloc_swa_token_usage",
        "kv_transfer_speed_gb_s",
        "kv_transfer_latency_ms",
        "kv_transfer_bootstrap_ms",
        "kv_transfer_alloc_ms",
        "kv_transfer_total_mb",
    ),
    "special queues, already inside or beside the running and queued requests": (
        "num_grammar_queue_reqs",
        "num_paused_reqs",
        "num_running_reqs_offline_batch",
    ),
    "request sizes, which the request records carry one by one": (
        "prompt_tokens_histogram",
        "uncached_prompt_tokens_histogram",
        "generation_tokens_histogram",
    ),
    "stages of a request's life, not of a cycle": ("per_stage_req_latency_seconds",),
    "HTTP routing and session affinity": (
        "http_requests_total",
        "http_responses_total",
        "http_requests_active",
        "routing_keys_active",
        "num_unique_running_routing_keys",
        "routing_key_running_req_count",
        "routing_key_all_req_count",
    ),
    "balance between data-parallel attention ranks": (
        "dp_attention_tokens_total",
        "dp_attention_steps_total",
        "dp_attention_pairs_total",
        "dp_attention_token_imbalance_ratio",
        "dp_attention_sync_wait_seconds",
    ),
}

NOT_MAPPED: dict[str, str] = {name: reason for reason, names in _BY_REASON.items() for name in names}
"""Raw family name without prefix → why it is not read."""
