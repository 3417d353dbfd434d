"""What SGLang 0.5.8 exposes, as far as the demo plays it. Tokenizer metrics carry ``model_name`` only."""

from __future__ import annotations

from specscope_server.demo import families as shared
from specscope_server.demo.exposition import Family, Row, Snapshot
from specscope_server.demo.families import leader_gauge, merged, pid_gauge, seen


def _gpu_seconds(snapshot: Snapshot) -> list[Row]:
    """Return device time; one timer wraps a whole round, so draft, verify and extend are one category."""
    spent = snapshot.telemetry.forward_ms
    prefill_ms = spent["extend"]
    decode_ms = sum(spent.values()) - prefill_ms
    rows: list[Row] = []
    for category, value_ms in (("forward_extend", prefill_ms), ("forward_decode", decode_ms)):
        if value_ms:
            rows += snapshot.per_rank(value_ms / 1000, category=category)
    return rows


def _counter(name: str, text: str, attribute: str) -> Family:
    def rows(snapshot: Snapshot) -> list[Row]:
        total = sum(getattr(snapshot.telemetry, attribute).values())
        return [({"model_name": snapshot.model_name}, float(total))] if total else []

    return Family(f"sglang:{name}_total", "counter", text, rows)


def _cached(snapshot: Snapshot) -> list[Row]:
    total = snapshot.telemetry.cached_tokens
    return [({"model_name": snapshot.model_name}, float(total))] if total else []


def _latency(name: str, text: str, attribute: str) -> Family:
    return Family(
        f"sglang:{name}_seconds",
        "histogram",
        text,
        histograms=lambda s: seen(
            {"": merged(getattr(s.telemetry, attribute))}, {"model_name": s.model_name}
        ),
    )


INTER_TOKEN = Family(
    "sglang:inter_token_latency_seconds",
    "histogram",
    "Time between tokens, spread over the tokens of a chunk.",
    histograms=lambda s: seen({"": s.telemetry.inter_token}, {"model_name": s.model_name}),
)
MAX_TOKENS = Family(
    "sglang:max_total_num_tokens",
    "gauge",
    "Capacity of the KV cache.",
    lambda s: [(s.scheduler(), s.constants["max_total_num_tokens"])] if s.telemetry.gauges else [],
)

FAMILIES = (
    shared.DEMO_INFO,
    shared.prefill_stage("prefill_waiting"),
    shared.queue_time(),
    pid_gauge("num_retracted_reqs", "Retracted requests."),
    pid_gauge("num_paused_reqs", "Paused requests."),
    leader_gauge("num_running_reqs", "Requests being decoded."),
    leader_gauge("num_used_tokens", "Tokens in the KV cache."),
    shared.TOKEN_USAGE,
    leader_gauge("gen_throughput", "Generated tokens per second over the last window."),
    leader_gauge("num_queue_reqs", "Requests waiting."),
    leader_gauge("num_grammar_queue_reqs", "Requests waiting for a grammar."),
    leader_gauge("cache_hit_rate", "Prefix cache hit rate of the last prefill batch."),
    MAX_TOKENS,
    leader_gauge("spec_accept_length", "Accept length over the last window, bonus included."),
    leader_gauge("spec_accept_rate", "Accept length over verified tokens, bonus included."),
    leader_gauge("utilization", "Never set."),
    leader_gauge("engine_startup_time", "Never set."),
    leader_gauge("engine_load_weights_time", "Never set."),
    leader_gauge("is_cuda_graph", "Never set."),
    shared.REALTIME_TOKENS,
    shared.graph_passes(with_prefill=False),
    Family("sglang:gpu_execution_seconds_total", "counter", "Device time by category.", _gpu_seconds),
    shared.PROCESS_CPU,
    shared.HTTP_REQUESTS,
    _counter("prompt_tokens", "Prompt tokens of finished requests.", "prompt_tokens"),
    _counter("generation_tokens", "Output tokens of finished requests.", "generation_tokens"),
    Family("sglang:cached_tokens_total", "counter", "Prompt tokens from the cache.", _cached),
    _counter("num_requests", "Finished requests.", "requests"),
    shared.HTTP_RESPONSES,
    _latency("time_to_first_token", "Time to the first chunk.", "first_token"),
    _latency("e2e_request_latency", "Time from arrival to the end.", "end_to_end"),
    INTER_TOKEN,
    shared.HTTP_ACTIVE,
)
