"""An engine that counts its drafts itself: summary, trend and positions against what it served."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, T0, Feed, request
from tests.support.vllm import VllmEngine

from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import CounterMemory, advance
from specscope_collectors.observations import Increment, Launch, Level, Observation
from specscope_collectors.sources.vllm_metrics.mapping import map_exposition
from specscope_server.store.ingest import IngestWriter

RANGE = {"server": "gpu1:30000", "from": "2026-03-01T12:00:00Z", "to": "2026-03-01T12:10:00Z"}


def vllm_launch(key: str = "v1", time_ms: int = T0) -> Launch:
    return Launch(
        key=key, time_ms=time_ms, engine="vllm", engine_version="0.11.0", version_source="version",
        model="tiny/target", served_model_name="tiny/target",
    )  # fmt: skip


def scraped(
    engine: VllmEngine, memory: CounterMemory, time_ms: int
) -> tuple[list[Observation], CounterMemory]:
    """Return what one scrape adds."""
    found = map_exposition(parse_exposition(engine.metrics(), max_series=500, wanted=None))
    grown = advance(memory, found.counters, found.histograms, time_ms)
    levels = [
        Level(metric=metric, labels=dict(labels), time_ms=time_ms, value=value)
        for (metric, labels), value in found.levels.items()
    ]
    return [*grown.increments, *grown.distributions, *levels], grown.memory


def watch(feed: Feed, engine: VllmEngine, shares: list[float]) -> None:
    """Scrape the engine at T0 and after each stretch of 60 cycles a rank."""
    observations, memory = scraped(engine, CounterMemory(), T0)
    feed.launch_key = "v1"
    feed.send(vllm_launch(), *observations)
    for index, share in enumerate(shares, start=1):
        engine.serve(60, seed=index, share=share)
        observations, memory = scraped(engine, memory, T0 + index * SCRAPE_MS)
        feed.send(*observations)


def get(web: Web, path: str, **params: str) -> Any:
    return web.api(f"/acceptance/{path}", **RANGE | params)


@pytest.mark.parametrize("spelling", ["0.8", "0.10"])
@pytest.mark.parametrize("size", [1, 2])
def test_the_summary_is_what_was_counted(web: Web, feed: Feed, spelling: str, size: int) -> None:
    engine = VllmEngine(spelling=spelling, size=size)
    watch(feed, engine, [0.7] * 10)
    cycles = sum(rank.cycles for rank in engine.ranks)
    accepted = sum(sum(rank.accepted) for rank in engine.ranks)
    found = get(web, "summary")
    assert found["evidence"] == "draft_counters"
    assert found["accept_length"]["value"] == pytest.approx(1 + accepted / cycles)
    assert found["draft_acceptance"]["value"] == pytest.approx(accepted / (3 * cycles))
    assert found["accept_length"]["n"] == cycles
    assert "vllm:spec_decode_num_accepted_tokens_total" in found["accept_length"]["source"]
    assert "vLLM 0.11.0" in found["accept_length"]["source"]
    counts = found["counts"]
    assert (counts["accepted_drafts"], counts["proposed_drafts"]) == (accepted, 3 * cycles)
    assert (counts["verify_calls"], counts["accepted_drafts_kind"]) == (cycles, "counted")
    assert (found["num_steps"]["value"], found["num_draft_tokens"]["value"]) == (3, 4)
    assert found["verify_calls_per_second"]["value"] == pytest.approx(cycles / 50)
    assert found["generated_tokens_per_second"]["value"] > 0
    assert found["verdict"]["state"] == "ok"
    assert {check["name"]: check["passed"] for check in found["checks"]}["accepted ≤ proposed"] is True


def test_the_trend_says_its_evidence(web: Web, feed: Feed) -> None:
    watch(feed, VllmEngine(), [0.9] * 6 + [0.1] * 6)
    points = [point for point in get(web, "trend", step="30s")["points"] if point["accept_length"]]
    assert {point["evidence"] for point in points} == {"draft_counters"}
    assert points[0]["accept_length"] > points[-1]["accept_length"] + 1
    assert points[0]["generated_tokens_per_second"] > 0
    assert sum(point["verify_calls"] for point in points) == 720


def test_one_rank_alone(web: Web, feed: Feed) -> None:
    engine = VllmEngine(size=2)
    watch(feed, engine, [0.5] * 5)
    assert get(web, "summary", rank="1")["counts"]["verify_calls"] == 300


@pytest.mark.parametrize("spelling", ["0.8", "0.10"])
def test_positions_are_counted(web: Web, feed: Feed, spelling: str) -> None:
    engine = VllmEngine(spelling=spelling)
    watch(feed, engine, [0.7] * 10)
    found = get(web, "positions")
    [group] = found["groups"]
    assert (group["evidence"], group["num_steps"], group["requests"]) == ("draft_counters", 3, None)
    assert [point["accepted"] for point in group["positions"]] == engine.ranks[0].accepted
    offered = [engine.ranks[0].cycles, *engine.ranks[0].accepted[:-1]]
    assert [point["offered"] for point in group["positions"]] == offered
    assert group["sums_to_accept_length"]
    assert 1 + sum(point["survival"] for point in group["positions"]) == pytest.approx(group["accept_length"])
    assert all(
        point["survival_low"] <= point["survival"] <= point["survival_high"] for point in group["positions"]
    )
    assert found["note"] == ""


def test_drafts_of_different_lengths_are_held_against_those_proposed(web: Web, feed: Feed) -> None:
    engine = VllmEngine()
    watch(feed, engine, [])
    _, memory = scraped(engine, CounterMemory(), T0)
    for _ in range(300):
        engine.ranks[0].cycle(3, 3)
        engine.ranks[0].cycle(1, 1)
    feed.send(*scraped(engine, memory, T0 + SCRAPE_MS)[0])
    [group] = get(web, "positions")["groups"]
    assert [point["survival"] for point in group["positions"]] == [1, 1, 1]
    assert group["accept_length"] == 3
    assert not group["sums_to_accept_length"]
    assert "differently many" in group["note"]


@pytest.mark.parametrize("name", ["positions", "request-lengths"])
def test_charts_are_drawn_of_counters(web: Web, feed: Feed, name: str) -> None:
    watch(feed, VllmEngine(), [0.7] * 10)
    answer = web.get(f"/api/v1/figures/{name}", params=RANGE)
    assert answer.status_code == 200, answer.text
    assert ("survival" in answer.text) is (name == "positions")


def test_the_heat_map_prefers_counters(web: Web, feed: Feed) -> None:
    watch(feed, VllmEngine(), [0.7] * 10)
    feed.send(request(1, T0 + SCRAPE_MS, (1, 1, 1, 1)))
    found = get(web, "positions/trend")
    assert "counters" in found["evidence"]
    assert sum(cell["cycles"] for cell in found["cells"] if cell["position"] == 1) == 600


def test_requests_do_not_replace_what_the_engine_counts(web: Web, feed: Feed) -> None:
    watch(feed, VllmEngine(), [0.7] * 10)
    feed.send(*(request(number, T0 + SCRAPE_MS, (300, 0, 0, 0)) for number in range(3)))
    assert get(web, "summary")["evidence"] == "draft_counters"
    assert len(get(web, "positions")["groups"]) == 1


def test_two_engines_in_one_range_are_added_up_and_named(web: Web, feed: Feed) -> None:
    feed.launch("s1", T0 - 100_000, engine_version="0.5.23")
    feed.scrapes(1, T0 - 90_000, running=1, calls=400, tokens=1_001, finished=1)
    watch(feed, VllmEngine(), [1.0] * 10)
    found = get(web, "summary", **{"from": "2026-03-01T11:50:00Z"})
    assert found["evidence"] == "counters"
    assert found["accept_length"]["value"] == pytest.approx(1 + (600 + 1_800) / 1_000)
    assert "SGLang 0.5.23" in found["accept_length"]["source"]
    assert "vLLM 0.11.0" in found["accept_length"]["source"]


def test_it_is_said_who_counted(web: Web, feed: Feed) -> None:
    """SGLang has no such counters: its drafts are counted by the probe in it."""
    feed.launch("s1", T0 - 100_000, engine_version="0.5.23")
    grown = {"spec.cycles": 400, "spec.drafts_proposed": 1_200, "spec.drafts_accepted": 600}
    feed.send(
        *(
            Increment(metric=metric, labels={}, time_ms=T0 + SCRAPE_MS, span_ms=SCRAPE_MS, value=value)
            for metric, value in grown.items()
        )
    )
    found = get(web, "summary")
    assert found["evidence"] == "draft_counters"
    assert "by Specscope's probe inside the engine" in found["evidence_note"]
    assert "by Specscope's probe inside the engine" in found["counts"]["explanation"]
    watch(feed, VllmEngine(), [1.0] * 10)
    note = get(web, "summary")["evidence_note"]
    assert "by Specscope's probe inside the engine and the engine itself" in note
    assert "by the engine itself:" in get(web, "summary", launch="newest")["evidence_note"]


def test_without_speculation_it_says_so(web: Web, feed: Feed) -> None:
    watch(feed, VllmEngine(is_speculating=False), [0.5] * 4)
    found = get(web, "summary")
    assert found["evidence"] == "none"
    assert found["verdict"]["headline"] == "No drafts were counted"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(1, 5))
def test_sums_over_the_store_are_those_of_the_engine(
    lone_web: Web, sqlite_engine: Engine, shares: list[float], depth: int
) -> None:
    server = f"s{uuid4().hex}"
    engine = VllmEngine(depth=depth)
    watch(Feed(IngestWriter(sqlite_engine, lambda: NOW), server), engine, shares)
    counts = get(lone_web, "summary", server=server)["counts"]
    assert counts["accepted_drafts"] == sum(engine.ranks[0].accepted)
    assert counts["verify_calls"] == 60 * len(shares)
    [group] = get(lone_web, "positions", server=server)["groups"]
    assert [point["accepted"] for point in group["positions"]] == engine.ranks[0].accepted
