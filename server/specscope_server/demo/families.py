"""Builders of metric families that SGLang 0.5.8 and 0.5.23 share, and the demo's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from specscope_server.demo.exposition import Family, Labels, Row, Snapshot
from specscope_server.demo.histograms import Histogram

DEMO_INFO = Family("specscope_demo_info", "gauge", "These numbers are simulated.", lambda _: [({}, 1.0)])


def leader_gauge(name: str, text: str, default: float = 0.0) -> Family:
    """Return a gauge that the leader publishes at its log calls."""
    return Family(f"sglang:{name}", "gauge", text, lambda s: s.gauge(name, default))


def constant_gauge(name: str, text: str) -> Family:
    """Return a gauge that every rank writes once at start."""
    return Family(f"sglang:{name}", "gauge", text, lambda s: s.per_rank(s.constants[name]))


def pid_gauge(name: str, text: str) -> Family:
    """Return a gauge of the kind that carries the process id; always 0 here."""
    return Family(
        f"sglang:{name}",
        "gauge",
        text,
        lambda s: [(s.scheduler(pid=str(s.pid)), 0.0)] if s.telemetry.gauges else [],
    )


def _token_usage(snapshot: Snapshot) -> list[Row]:
    capacity = snapshot.constants["max_total_num_tokens"]
    return [(labels, value / capacity) for labels, value in snapshot.gauge("num_used_tokens")]


TOKEN_USAGE = Family("sglang:token_usage", "gauge", "Share of the KV cache in use.", _token_usage)


def labelled(values: Mapping[str, float], key: str, labels: Labels) -> list[Row]:
    """Return one row per counted label value."""
    return [({**labels, key: value}, float(amount)) for value, amount in values.items()]


REALTIME_TOKENS = Family(
    "sglang:realtime_tokens_total",
    "counter",
    "Tokens processed, by mode, counted as it happens.",
    lambda s: labelled(s.telemetry.realtime_tokens, "mode", s.scheduler()),
)


def graph_passes(with_prefill: bool) -> Family:
    """Return forward passes by graph mode; every rank counts. Older engines count decode steps only."""

    def rows(snapshot: Snapshot) -> list[Row]:
        passes = Counter(decode_cuda_graph=snapshot.telemetry.decode_steps)
        if with_prefill:
            passes["prefill_none"] = snapshot.telemetry.prefill_batches
        return [
            row
            for mode, count in sorted(passes.items(), reverse=True)
            if count
            for row in snapshot.per_rank(count, mode=mode)
        ]

    return Family("sglang:cuda_graph_passes_total", "counter", "Forward passes by CUDA graph mode.", rows)


def _process_cpu(snapshot: Snapshot) -> list[Row]:
    telemetry = snapshot.telemetry
    tokens = telemetry.realtime_tokens["decode"]
    steps = telemetry.decode_steps
    return [
        ({"component": "tokenizer"}, 0.4 + 2e-4 * tokens),
        ({"component": "detokenizer"}, 0.05 + 1e-4 * steps),
    ]


PROCESS_CPU = Family(
    "sglang:process_cpu_seconds_total", "counter", "CPU time of helper processes.", _process_cpu
)

_CHAT = {"endpoint": "/v1/chat/completions", "method": "POST"}


def _http_requests(snapshot: Snapshot) -> list[Row]:
    begun = sum(snapshot.telemetry.requests.values()) + snapshot.active_requests
    return [(_CHAT, float(begun))] if begun else []


def _http_responses(snapshot: Snapshot) -> list[Row]:
    done = sum(snapshot.telemetry.requests.values())
    return [({**_CHAT, "status_code": "200"}, float(done))] if done else []


HTTP_REQUESTS = Family("sglang:http_requests_total", "counter", "HTTP requests.", _http_requests)
HTTP_RESPONSES = Family("sglang:http_responses_total", "counter", "HTTP responses.", _http_responses)
HTTP_ACTIVE = Family(
    "sglang:http_requests_active",
    "gauge",
    "HTTP requests in progress.",
    lambda s: [(_CHAT, float(s.active_requests))],
)


def queue_time() -> Family:
    """Return the histogram of queueing time."""
    return Family(
        "sglang:queue_time_seconds",
        "histogram",
        "Time in the waiting queue.",
        histograms=lambda s: seen({"": s.telemetry.queue}, s.scheduler()),
    )


def prefill_stage(stage: str) -> Family:
    """Return the histogram of request stages with the one stage that is played."""
    return Family(
        "sglang:per_stage_req_latency_seconds",
        "histogram",
        "Time of a stage of a request.",
        histograms=lambda s: seen({"": s.telemetry.prefill_stage}, s.scheduler(stage=stage)),
    )


def seen(
    histograms: Mapping[str, Histogram], labels: Labels, key: str = ""
) -> list[tuple[Labels, Histogram]]:
    """Return the histograms that were observed at least once, labelled ``key`` = their name."""
    return [
        ({**labels, key: name} if key else labels, histogram)
        for name, histogram in histograms.items()
        if histogram.count
    ]


def merged(histograms: Mapping[str, Histogram]) -> Histogram:
    """Return the sum of histograms of one layout."""
    parts = list(histograms.values())
    total = Histogram(parts[0].bounds)
    total.counts = [sum(counts) for counts in zip(*(part.counts for part in parts), strict=True)]
    total.sum = sum(part.sum for part in parts)
    return total
