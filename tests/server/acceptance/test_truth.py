"""What the API says of simulated engines, against what really happened in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.server.acceptance.simulated import Scheduler, scrapes
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed, level

from specscope_collectors.observations import Parallelism
from specscope_server.acceptance.statistics import bootstrapped_ratio, student_t

BUSY_IDLE_BUSY = [4] * 40 + [0] * 60 + [8] * 40 + [0] * 20


def ask(web: Web, path: str, scrapes_made: int, **parameters: Any) -> dict[str, Any]:
    asked = {"from_": T0, "to": T0 + scrapes_made * SCRAPE_MS + 1, **parameters}
    found = web.api(f"/acceptance/{path}", server=SERVER, **asked)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("step", ["10s", "1m", "10m", "1h"])
def test_counts_are_exact_and_ratios_near_the_truth_however_coarse_the_step(
    web: Web, feed: Feed, step: str
) -> None:
    engine = Scheduler(1)
    feed.launch()
    feed.send(*scrapes([engine], T0, BUSY_IDLE_BUSY))
    found, truth = ask(web, "summary", len(BUSY_IDLE_BUSY), step=step), engine.truth
    counts = found["counts"]
    assert counts["verify_calls"] == truth.cycles
    assert counts["generated_tokens"] == truth.output_tokens
    assert counts["finished_requests"] == truth.requests
    assert counts["accepted_drafts"] == truth.accepted - truth.overshoot
    assert counts["decoded_tokens"] == truth.decode_cycles + truth.decode_accepted
    derived = 1 + (truth.accepted - truth.overshoot) / truth.cycles
    assert found["accept_length"]["value"] == pytest.approx(derived)
    assert found["draft_acceptance"]["value"] == pytest.approx((derived - 1) / 3)
    busy_seconds = truth.busy_ms / 1_000
    live = (truth.decode_cycles + truth.decode_accepted) / busy_seconds
    assert found["generated_tokens_per_second"]["value"] == pytest.approx(live, rel=0.03)
    assert found["verify_calls_per_second"]["value"] == pytest.approx(truth.cycles / busy_seconds, rel=0.03)
    points = ask(web, "trend", len(BUSY_IDLE_BUSY), step=step)["points"]
    assert sum(point["verify_calls"] or 0 for point in points) == truth.cycles


@pytest.mark.parametrize("step", ["5s", "1m", "5m", "10m", "1h"])
def test_frozen_gauges_of_a_partly_idle_bucket_are_not_mixed_in(web: Web, feed: Feed, step: str) -> None:
    """One busy minute at τ = 2, then nine idle ones in which the gauge stands at 3.9."""
    feed.launch(engine_version="0.5.8")
    feed.scrapes(12, tau=2.0, rate=0.5, running=1)
    feed.scrapes(108, start_ms=T0 + 12 * SCRAPE_MS, tau=3.9, rate=0.975, running=0)
    assert ask(web, "summary", 120, step=step)["accept_length"]["value"] == pytest.approx(2.0)
    points = ask(web, "trend", 120, step=step)["points"]
    seen = [point["accept_length"] for point in points if point["accept_length"] is not None]
    assert seen == pytest.approx([2.0] * len(seen))
    assert seen
    assert all(point["engine_reported_rate"] in (None, pytest.approx(0.5)) for point in points)


def test_an_idle_rank_does_not_hold_its_frozen_gauge_against_the_others(web: Web, feed: Feed) -> None:
    feed.launch(parallelism=Parallelism(tp_size=2, dp_size=2, pp_size=1))
    for index in range(1, 121):
        time_ms, busy = T0 + index * SCRAPE_MS, index < 60
        feed.send(
            level("requests.running", 3, time_ms, dp=0),
            level("spec.accept_length", 2.0, time_ms, dp=0),
            level("requests.running", 2 if busy else 0, time_ms, dp=1, tp=1),
            level("spec.accept_length", 4.0, time_ms, dp=1, tp=1),
        )
    (point,) = ask(web, "trend", 118, step="10m")["points"]
    assert point["accept_length"] == pytest.approx((59 * 3.0 + 59 * 2.0) / 118)


@pytest.mark.parametrize(
    ("said", "prints", "formula"),
    [
        ("0.5.8", "0.5.8", "τ/D"),
        ("0.5.15", "0.5.15", "(τ−1)/(D−1)"),
        ("0.5.12.post1+cu128", "0.5.8", "τ/D"),
        ("0.5.12.post1+cu128", "0.5.15", "(τ−1)/(D−1)"),
        ("0.5.9rc1", "0.5.8", "τ/D"),
        ("main-abc123", "0.5.15", "(τ−1)/(D−1)"),
        (None, "0.5.8", "τ/D"),
        ("0.5.15", "0.5.8", "undetermined"),
        ("0.5.8", "0.5.15", "undetermined"),
    ],
)
def test_the_definition_of_a_printed_rate(
    web: Web, feed: Feed, said: str | None, prints: str, formula: str
) -> None:
    engine = Scheduler(2, version=prints)
    feed.launch(engine_version=said)
    feed.send(*scrapes([engine], T0, [4] * 60, counters=False))
    found = ask(web, "summary", 60)
    rate = found["engine_reported_rate"]
    assert rate["formula"] == formula
    assert found["accept_length"]["value"] == pytest.approx(engine.truth.decode_length, rel=0.02)
    if formula == "undetermined":
        assert (rate["strict_equivalent"], rate["number"]["state"]) == (None, "undetermined")
    else:
        assert rate["strict_equivalent"] == pytest.approx((engine.truth.decode_length - 1) / 3, rel=0.05)


def test_eight_ranks_with_mirrors_add_up_once(web: Web, feed: Feed) -> None:
    engines = [Scheduler(seed, chance=0.3 + 0.05 * seed) for seed in range(8)]
    feed.launch(parallelism=Parallelism(tp_size=16, dp_size=8, pp_size=1, enable_dp_attention=True))
    feed.send(*scrapes(engines, T0, [3] * 20, mirrors=2))
    found = ask(web, "summary", 20)
    assert found["counts"]["verify_calls"] == sum(engine.truth.cycles for engine in engines)
    decoded = sum(engine.truth.decode_cycles + engine.truth.decode_accepted for engine in engines)
    assert found["counts"]["decoded_tokens"] == decoded
    assert found["generated_tokens_per_second"]["value"] == pytest.approx(decoded / (20 * SCRAPE_MS / 1_000))
    assert found["requests_running"]["value"] == sum(engine.gauges["running"] for engine in engines)


def test_a_tree_proposes_its_nodes(web: Web, feed: Feed) -> None:
    engine = Scheduler(3, width=8)
    feed.launch(speculative={"eagle_topk": 4, "num_steps": 3, "num_draft_tokens": 8})
    feed.send(*scrapes([engine], T0, [4] * 40))
    found = ask(web, "summary", 40)
    assert found["counts"]["proposed_drafts"] == engine.truth.cycles * 7
    assert found["engine_reported_rate"]["formula"] == "(τ−1)/(D−1)"


def test_a_launch_that_began_inside_a_bucket_counts_for_its_time_with_its_own_width(
    web: Web, feed: Feed
) -> None:
    feed.launch("a", engine_version="0.5.8", speculative={"num_steps": 5, "num_draft_tokens": 6})
    feed.scrapes(108, tau=1.5, rate=0.25, running=1)
    feed.launch("b", T0 + 540_001, engine_version="0.5.8")
    feed.scrapes(11, start_ms=T0 + 540_000, tau=3.1, rate=0.775, running=1)
    (point,) = ask(web, "trend", 119, step="10m")["points"]
    assert point["accept_length"] == pytest.approx((108 * 1.5 + 11 * 3.1) / 119)
    assert point["draft_acceptance"] == pytest.approx((108 * 0.5 / 5 + 11 * 2.1 / 3) / 119)


def test_launches_without_counts_are_named_and_not_compared(web: Web, feed: Feed) -> None:
    feed.launch("a", engine_version="0.5.8")
    feed.send(*scrapes([Scheduler(3, chance=0.1, version="0.5.8")], T0, [4] * 40, counters=False))
    feed.launch("b", T0 + 200_001)
    feed.send(*scrapes([Scheduler(4, chance=0.8)], T0 + 200_000, [4] * 40))
    found = ask(web, "summary", 80)
    assert found["evidence"] == "counters"
    assert (
        "1 of 2 launches in this range printed an accept length but no counts"
        in (found["accept_length"]["note"])
    )
    passed = {check["name"]: check["passed"] for check in found["checks"]}
    assert passed["gauges agree with counters"] is True


def test_a_bucket_with_an_adaptive_launch_has_no_share_of_proposed_drafts(web: Web, feed: Feed) -> None:
    feed.launch("a")
    feed.scrapes(5, calls=100, tokens=201, finished=1, running=1)
    feed.launch("b", T0 + 25_001, speculative={"adaptive": True})
    feed.scrapes(5, start_ms=T0 + 25_000, calls=100, tokens=301, finished=1, running=1)
    (point,) = ask(web, "trend", 10, step="1m")["points"]
    assert point["accept_length"] == pytest.approx(2.5)
    assert point["draft_acceptance"] is None


def test_time_without_speculation_does_not_dilute_the_cycles_per_second(web: Web, feed: Feed) -> None:
    feed.launch("off", speculative={"algorithm": None, "num_steps": None, "num_draft_tokens": None})
    feed.scrapes(60, calls=0, tokens=500, finished=2, running=1)
    feed.launch("on", T0 + 300_001)
    feed.scrapes(60, start_ms=T0 + 300_000, calls=100, tokens=201, finished=1, running=1)
    assert ask(web, "summary", 120)["verify_calls_per_second"]["value"] == pytest.approx(20.0)


@pytest.mark.parametrize("unaligned", [{}, {"step": "1h"}, {"points": 1}])
def test_the_summary_covers_what_was_asked_for_and_not_a_whole_bucket(
    web: Web, feed: Feed, unaligned: dict[str, Any]
) -> None:
    feed.launch()
    feed.scrapes(60, calls=100, tokens=201, finished=1, running=1)
    found = web.api("/acceptance/summary", server=SERVER, from_=T0 + 7_500, to=T0 + 32_500, **unaligned)
    assert found["counts"]["verify_calls"] == 500  # scrapes at 10, 15, 20, 25 and 30 s


@pytest.mark.parametrize(("scrapes_made", "load"), [(6, 4), (12, 3), (60, 1)])
def test_the_interval_covers_the_truth_in_about_95_of_100_cases(scrapes_made: int, load: int) -> None:
    windows = [_counted(seed, scrapes_made, load) for seed in range(80)]
    truth = sum(y.sum() for y, _ in windows) / sum(x.sum() for _, x in windows)
    ratios = [bootstrapped_ratio(y, x) for y, x in windows]
    inside = [r.low <= truth <= r.high for r in ratios if r.low is not None and r.high is not None]
    assert len(inside) > 60
    assert np.mean(inside) >= 0.88  # 80 cases: 95 % ± 5 points


def _counted(seed: int, scrapes_made: int, load: int) -> tuple[Any, Any]:
    engine, accepted, calls = Scheduler(1_000 + seed, mean_tokens=60), [], []
    for _ in range(scrapes_made):
        engine.run(SCRAPE_MS, load)
        grown = engine.read()
        accepted.append(grown["tokens"] - grown["finished"] - grown["calls"])
        calls.append(grown["calls"])
    return np.array(accepted, dtype=np.float64), np.array(calls, dtype=np.float64)


@pytest.mark.parametrize(("freedom", "quantile"), [(2, 4.303), (5, 2.571), (14, 2.145), (200, 1.972)])
def test_quantiles_of_students_t(freedom: float, quantile: float) -> None:
    assert student_t(freedom) == pytest.approx(quantile, rel=0.04)
