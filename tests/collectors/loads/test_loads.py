"""``/v1/loads`` gives what ``/metrics`` does not, and nothing that it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specscope_collectors.catalogue import CATALOGUE, Kind
from specscope_collectors.sources.sglang_loads import NotLoadsError, parse_loads, to_levels
from specscope_collectors.sources.sglang_loads.levels import FIELDS

FIXTURES = Path(__file__).parent / "fixtures"


def captured(name: str = "v1_loads-0.5.23") -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text())
    return answer


def values(answer: dict[str, Any], already: tuple[str, ...] = ()) -> dict[str, float]:
    loads = parse_loads(json.dumps(answer).encode())
    levels, refused = to_levels(loads, time_ms=5, already=already, labels={"model_name": "m"})
    assert refused == 0
    assert {level.time_ms for level in levels} <= {5}
    return {level.metric: level.value for level in levels}


def test_every_field_is_catalogued_as_a_level() -> None:
    assert {CATALOGUE[metric].kind for metric in FIELDS} == {Kind.LEVEL}


def test_without_metrics_the_current_load_is_taken_and_empty_zeros_are_not() -> None:
    found = values(captured())
    assert found == {
        "requests.running": 0, "requests.queued": 0, "kv.used_tokens": 0, "kv.max_tokens": 8192,
        "kv.usage": 0, "engine.max_running_requests": 8,
        "spec.lifetime_accept_length": 2.2190201729106627, "memory.weights": 0.01,
        "memory.kv_cache": 0.016, "memory.graphs": 0,
    }  # fmt: skip


def test_with_metrics_nothing_is_reported_twice() -> None:
    already = tuple(set(FIELDS) - {"spec.lifetime_accept_length", "engine.max_running_requests"})
    assert set(values(captured(), already)) == {"spec.lifetime_accept_length", "engine.max_running_requests"}


def test_without_speculation_there_is_no_accept_length() -> None:
    found = values(captured("v1_loads-0.5.23-no-speculation"))
    assert "spec.lifetime_accept_length" not in found
    assert found["throughput.generated"] == 7.53


def test_a_lifetime_length_of_zero_is_no_window_yet() -> None:
    answer = captured()
    answer["loads"][0]["speculative"]["accept_length"] = 0.0
    assert "spec.lifetime_accept_length" not in values(answer)


def test_shape_of_0_5_8_with_aggregate_and_no_snapshot_time() -> None:
    load = {
        "dp_rank": 0,
        "num_running_reqs": 3,
        "num_waiting_reqs": 1,
        "num_total_reqs": 4,
        "token_usage": 0.25,
    }
    answer = {
        "timestamp": "2026-11-29T21:06:55+00:00", "version": "0.5.8", "dp_rank_count": 1, "loads": [load],
        "aggregate": {"total_running_reqs": 3},
    }  # fmt: skip
    assert values(answer) == {"requests.running": 3, "requests.queued": 1, "kv.usage": 0.25}
    assert parse_loads(json.dumps(answer).encode()).age_seconds is None


def test_several_ranks_are_told_apart() -> None:
    answer = captured()
    answer["loads"] = [answer["loads"][0] | {"dp_rank": rank} for rank in (0, 1)]
    levels, _ = to_levels(parse_loads(json.dumps(answer).encode()), time_ms=1, already=(), labels={})
    assert {level.labels["dp_rank"] for level in levels} == {"0", "1"}


def test_the_age_of_the_snapshot_is_measured_by_the_engines_own_clock() -> None:
    answer = captured()
    age = parse_loads(json.dumps(answer).encode()).age_seconds
    assert age is not None
    assert 0 < age < 1
    answer["loads"][0]["timestamp"] -= 90
    stale = parse_loads(json.dumps(answer).encode()).age_seconds
    assert stale is not None
    assert 90 < stale < 91


def test_impossible_values_are_refused_and_counted() -> None:
    answer = captured()
    answer["loads"][0] |= {"num_running_reqs": -1, "kv_cache": "text"}
    levels, refused = to_levels(parse_loads(json.dumps(answer).encode()), time_ms=1, already=(), labels={})
    assert refused == 1
    assert "requests.running" not in {level.metric for level in levels}


@pytest.mark.parametrize(
    ("body", "garbled"),
    [(b"<html>", False), (b'{"loads": [1]}', False), (b"{}", False), (b'{"loads": [', True), (b"", False)],
)
def test_what_is_no_loads_answer_is_refused(body: bytes, garbled: bool) -> None:
    with pytest.raises(NotLoadsError) as caught:
        parse_loads(body)
    assert caught.value.garbled is garbled
