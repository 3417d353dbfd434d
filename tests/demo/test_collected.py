"""The product's own collectors read the demo as they read the real engine, and know that it is a demo."""

from __future__ import annotations

import json

import pytest
from tests.demo.playing import STARTED_MS, player, running

from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.sources.sglang_info.body import parse_info
from specscope_collectors.sources.sglang_info.launch import to_launch
from specscope_collectors.sources.sglang_loads.body import parse_loads
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import WANTED
from specscope_server.demo import info
from specscope_server.demo.player import Player

BOTH = {
    "spec.accept_length",
    "spec.engine_accept_rate",
    "throughput.generated",
    "requests.running",
    "requests.queued",
    "kv.usage",
    "kv.max_tokens",
}
NEW = {"spec.num_steps", "spec.num_draft_tokens", "engine.forward_occupancy", "memory.weights"}


@pytest.fixture(params=["0.5.8", "0.5.23"])
def subject(request: pytest.FixtureRequest) -> Player:
    """Return an engine in the middle of its second launch."""
    playing = player(str(request.param))
    playing.advance(STARTED_MS + 100_000)
    assert running(playing).launch.index == 1
    return playing


def test_metrics_are_mapped_without_a_refusal(subject: Player) -> None:
    body = subject.metrics(running(subject)).encode()
    mapped = map_exposition(parse_exposition(body, max_series=20_000, wanted=WANTED))
    assert (mapped.refused, mapped.demo) == (0, True)
    assert mapped.version_from_metric_set == subject.version.name
    assert mapped.ranks
    levels = {key[0] for key in mapped.levels}
    assert levels >= (BOTH | NEW if subject.version.name == "0.5.23" else BOTH)
    counters = {key[0] for key in mapped.counters}
    assert counters >= {"tokens.generated", "tokens.decoded", "requests.finished", "time.forward"}
    assert ("spec.verify_calls" in counters) is (subject.version.name == "0.5.23")
    histograms = {key[0] for key in mapped.histograms}
    assert histograms >= {"latency.time_to_first_token", "latency.inter_token", "latency.queue"}


def test_server_info_becomes_a_launch_that_is_a_demo(subject: Player) -> None:
    answer = json.dumps(info.server_info(subject, running(subject), "127.0.0.1", 30000)).encode()
    launch = to_launch(parse_info(answer), key="k", time_ms=STARTED_MS)
    assert launch.is_demo
    assert launch.served_model_name == "Kimi-K2.5 (demo)"
    assert launch.engine_version == subject.version.name
    assert (launch.speculative.num_steps, launch.speculative.num_draft_tokens) == (5, 6)
    assert launch.parallelism.tp_size == 8
    assert launch.environment["NCCL_ALGO"] == "Ring"


def test_loads_are_a_demo_too(subject: Player) -> None:
    loads = parse_loads(json.dumps(info.loads(subject, running(subject))).encode())
    assert loads.is_demo
    assert len(loads.loads) == 1
