"""What SGLang 0.5.23 exposes, as far as the demo plays it.

Tokenizer metrics carry ``engine_type`` and most of them ``is_streaming``.
"""

from __future__ import annotations

from specscope_server.demo import families as shared
from specscope_server.demo import families_probe
from specscope_server.demo.exposition import Family, Labels, Row, Snapshot
from specscope_server.demo.families import constant_gauge, labelled, leader_gauge, pid_gauge, seen
from specscope_server.demo.telemetry import Telemetry

STAGES = (
    "other",
    "recv_requests",
    "process_input_requests",
    "get_next_batch_to_run",
    "process_queue",
    "run_batch",
    "process_batch_result",
    "sanity_check_cache",
    "idle",
)
GRAPH_GB = {
    "prefill": 0.0,
    "decode": 1.9,
    "target_verify": 2.6,
    "draft_prefill": 0.0,
    "draft_decode": 0.5,
    "draft_extend": 0.4,
}


def _tokenizer(snapshot: Snapshot) -> Labels:
    return {"model_name": snapshot.model_name, "engine_type": "unified"}


def _counter(name: str, text: str, attribute: str) -> Family:
    return Family(
        f"sglang:{name}_total",
        "counter",
        text,
        lambda s: labelled(getattr(s.telemetry, attribute), "is_streaming", _tokenizer(s)),
    )


def _latency(name: str, text: str, attribute: str) -> Family:
    return Family(
        f"sglang:{name}_seconds",
        "histogram",
        text,
        histograms=lambda s: seen(getattr(s.telemetry, attribute), _tokenizer(s), "is_streaming"),
    )


def _single(value: float, snapshot: Snapshot, **labels: str) -> list[Row]:
    return [({**_tokenizer(snapshot), **labels}, float(value))] if value else []


def _forward_seconds(snapshot: Snapshot) -> list[Row]:
    spent = snapshot.telemetry.forward_ms
    return [row for category, ms in spent.items() for row in snapshot.per_rank(ms / 1000, category=category)]


def _stage_seconds(snapshot: Snapshot) -> list[Row]:
    spent = snapshot.telemetry.stage_ms
    seeded = {(stage, "none"): 0.0 for stage in STAGES}
    for stage, ms in spent.items():
        seeded[stage, "partial" if stage == "run_batch" else "none"] = ms / 1000
    rows: list[Row] = []
    for (stage, overlap), seconds in seeded.items():
        rows += snapshot.per_rank(seconds, category=stage, forward_overlap=overlap)
    return rows


def _graph_memory(snapshot: Snapshot) -> list[Row]:
    return [row for phase, gb in GRAPH_GB.items() for row in snapshot.per_rank(gb, phase=phase)]


def _startup(snapshot: Snapshot) -> list[Row]:
    phases = ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")
    return [
        ({**_tokenizer(snapshot), "phase": phase}, snapshot.constants[f"startup_{phase}"]) for phase in phases
    ]


def _scheduler_cpu(snapshot: Snapshot) -> list[Row]:
    spent: Telemetry = snapshot.telemetry
    return snapshot.per_rank((sum(spent.stage_ms.values()) - 0.9 * spent.stage_ms["idle"]) / 1000)


INTER_TOKEN = Family(
    "sglang:inter_token_latency_seconds",
    "histogram",
    "Time between tokens, spread over the tokens of a chunk.",
    histograms=lambda s: seen({"": s.telemetry.inter_token}, _tokenizer(s)),
)

FAMILIES = (
    shared.DEMO_INFO,
    pid_gauge("num_retracted_reqs", "Retracted requests."),
    pid_gauge("num_paused_reqs", "Paused requests."),
    constant_gauge("max_total_num_tokens", "Capacity of the KV cache."),
    constant_gauge("weight_memory_usage_gb", "Memory of the weights."),
    constant_gauge("kv_cache_memory_usage_gb", "Memory of the KV cache."),
    Family("sglang:graph_memory_usage_gb", "gauge", "Memory of captured graphs.", _graph_memory),
    constant_gauge("page_size", "Tokens per KV cache page."),
    constant_gauge("num_pages", "KV cache pages."),
    constant_gauge("context_len", "Longest context."),
    leader_gauge("num_running_reqs", "Requests being decoded."),
    leader_gauge("num_queue_reqs", "Requests waiting."),
    leader_gauge("num_grammar_queue_reqs", "Requests waiting for a grammar."),
    leader_gauge("gen_throughput", "Generated tokens per second over the last window."),
    leader_gauge("cache_hit_rate", "Prefix cache hit rate of the last prefill batch."),
    shared.TOKEN_USAGE,
    leader_gauge("num_used_tokens", "Tokens in the KV cache."),
    leader_gauge("spec_accept_length", "Accept length over the last window, bonus included."),
    leader_gauge("spec_accept_rate", "Accepted drafts over proposed drafts of the last window."),
    leader_gauge("spec_cap_length", "DSpark only."),
    leader_gauge("spec_block_accept_length", "DSpark only."),
    leader_gauge("spec_num_steps", "Draft depth in force."),
    leader_gauge("spec_num_draft_tokens", "Verified tokens per request and cycle in force."),
    leader_gauge("utilization", "Never set."),
    leader_gauge("fwd_occupancy", "Share of the last window with the device busy, percent.", float("nan")),
    leader_gauge("is_cuda_graph", "Never set."),
    _latency("time_to_first_token", "Time to the first chunk.", "first_token"),
    _latency("e2e_request_latency", "Time from arrival to the end.", "end_to_end"),
    _latency("request_time_per_output_token", "Decode time per output token.", "per_token"),
    INTER_TOKEN,
    Family(
        "sglang:scheduler_idle_seconds_total",
        "counter",
        "Time without work.",
        lambda s: s.per_rank(s.telemetry.stage_ms["idle"] / 1000),
    ),
    Family(
        "sglang:scheduler_process_cpu_seconds_total", "counter", "CPU time of the scheduler.", _scheduler_cpu
    ),
    Family("sglang:scheduler_stage_seconds_total", "counter", "Scheduler time by stage.", _stage_seconds),
    shared.graph_passes(with_prefill=True),
    Family("sglang:forward_execution_seconds_total", "counter", "Device time by category.", _forward_seconds),
    shared.REALTIME_TOKENS,
    Family("sglang:startup_time_seconds", "gauge", "Startup time by phase.", _startup),
    shared.PROCESS_CPU,
    shared.HTTP_REQUESTS,
    shared.HTTP_RESPONSES,
    _counter("prompt_tokens", "Prompt tokens of finished requests.", "prompt_tokens"),
    _counter("generation_tokens", "Output tokens of finished requests.", "generation_tokens"),
    Family(
        "sglang:cached_tokens_total",
        "counter",
        "Prompt tokens from the cache.",
        lambda s: _single(s.telemetry.cached_tokens, s, cache_source="device"),
    ),
    Family(
        "sglang:spec_verify_calls_total",
        "counter",
        "Verify calls of finished requests.",
        lambda s: _single(s.telemetry.verify_calls, s),
    ),
    _counter("num_requests", "Finished requests.", "requests"),
    shared.prefill_stage("prefill_forward"),
    shared.queue_time(),
    shared.HTTP_ACTIVE,
    *families_probe.FAMILIES,
)
