"""Baseline, surface, ranks and two launches compared, on simulated engines whose truth is known."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SERVER, T0, Feed, rank_labels
from tests.server.timing.simulated import Engine, engine, play, play_batches
from tests.server.timing.test_levels import WINDOW, summary

from specscope_collectors.observations import Parallelism

LATER = T0 + 400_000
PARTS = {
    "draft": 1.4,
    "verify_prepare": 0.2,
    "verify": 30.0,
    "sampling": 0.5,
    "draft_extend": 0.6,
    "other": 0.3,
}
LONG = {"server": SERVER, "from_": T0, "to": T0 + 900_000}


def plain(**fields: Any) -> Engine:
    """Return an engine without speculation: 11 ms a step, of which 0.8 are a gap."""
    return engine(parts={"decode": 10.0, "decode_other": 0.2}, is_plain=True, length=1.0, **fields)


def off(feed: Feed, key: str, time_ms: int) -> None:
    """Begin a launch without speculation."""
    nothing = {"algorithm": None, "num_steps": None, "num_draft_tokens": None, "draft_model": None}
    feed.launch(key, time_ms, speculative={**nothing, "eagle_topk": None})


@pytest.mark.parametrize("sources", ["probe timer gauges", "timer gauges"])
def test_break_even_comes_from_a_measured_plain_launch(sources: str, feed: Feed, web: Web) -> None:
    off(feed, "plain", T0)
    play(feed, plain_of(sources))
    feed.launch("spec", LATER)
    play(feed, engine(sources), start_ms=LATER)
    found = summary(web, to=T0 + 900_000, launch="newest")
    step_ms, cycle_ms = 11.0, 33.8
    assert found["plain_time"]["value"] == pytest.approx(step_ms, rel=0.02)
    assert found["plain_time"]["age_seconds"] > 0
    assert "without speculation" in found["plain_time"]["source"]
    assert found["break_even"]["value"] == pytest.approx(cycle_ms / step_ms, rel=0.02)
    assert found["speed_up"]["value"] == pytest.approx(2.5 * step_ms / cycle_ms, rel=0.02)
    assert found["break_even"]["low"] < found["break_even"]["value"] < found["break_even"]["high"]
    assert found["verdict"]["state"] == "bad"
    assert any("slower than without speculation" in reason for reason in found["verdict"]["reasons"])


def test_plain_steps_of_the_launch_itself_are_its_baseline(feed: Feed, web: Web) -> None:
    """An adaptive engine that stopped drafting for a while; an older plain launch does not matter then."""
    off(feed, "plain", T0)
    play(feed, engine(parts={"decode": 20.0, "decode_other": 0.2}, is_plain=True, length=1.0))
    feed.launch("spec", LATER)
    play(feed, plain(), scrapes=20, start_ms=LATER)
    play(feed, engine(), start_ms=LATER + 200_000)
    found = summary(web, to=T0 + 900_000, launch="newest")
    assert found["plain_time"]["source"] == "plain steps of this launch itself"
    assert found["plain_time"]["value"] == pytest.approx(11.0, rel=0.02)
    assert found["break_even"]["value"] == pytest.approx(33.8 / 11.0, rel=0.02)


def plain_of(sources: str) -> Engine:
    """Return a plain engine with these sources."""
    return engine(sources, parts={"decode": 10.0, "decode_other": 0.2}, is_plain=True, length=1.0)


def test_a_plain_launch_at_other_batch_sizes_is_no_baseline(feed: Feed, web: Web) -> None:
    off(feed, "plain", T0)
    play(feed, plain(batch=40))
    feed.launch("spec", LATER)
    play(feed, engine(), start_ms=LATER)
    found = summary(web, to=T0 + 900_000, launch="newest")
    assert found["break_even"]["value"] is None
    assert "other batch sizes" in found["break_even"]["note"]


@pytest.mark.parametrize("difference", [{"model": "another"}, {"parallelism": Parallelism(tp_size=8)}])
def test_another_model_or_split_is_no_baseline(difference: dict[str, Any], feed: Feed, web: Web) -> None:
    off(feed, "plain", T0)
    play(feed, plain())
    feed.launch("spec", LATER, **difference)
    play(feed, engine(), start_ms=LATER)
    found = summary(web, to=T0 + 900_000, launch="newest")
    assert found["plain_time"]["value"] is None
    assert "run one" in found["plain_time"]["note"]


def test_the_surface_has_a_cell_for_each_batch_size_and_width(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("probe gauges", per_request=1.5, jitter=0.001)
    play_batches(feed, simulated, (1, 2, 4, 8))
    found = web.api("/timing/surface", **WINDOW, experts=384, experts_per_token=8)
    cells = {cell["batch"]: cell for cell in found["cells"]}
    assert list(cells) == ["1", "2", "3-4", "5-8"]
    assert sum(cell["cycles"] for cell in cells.values()) == simulated.cycles
    for bucket, batch in (("1", 1), ("2", 2), ("3-4", 4), ("5-8", 8)):
        assert cells[bucket]["verify_ms"] == pytest.approx(30 + 1.5 * (batch - 1), rel=1e-3)
        assert cells[bucket]["verify_low"] <= cells[bucket]["verify_ms"] <= cells[bucket]["verify_high"]
    assert cells["1"]["expected_experts_ratio"] == pytest.approx(31.0 / 8, rel=0.01)
    unknown = web.api("/timing/surface", **WINDOW)
    assert unknown["experts_note"].startswith("unknown")
    assert all(cell["expected_experts_ratio"] is None for cell in unknown["cells"])


def test_the_device_timers_cells_stand_at_the_gauges_batch(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("timer gauges", batch=7)
    play(feed, simulated)
    [cell] = web.api("/timing/surface", **WINDOW)["cells"]
    assert (cell["batch"], cell["num_draft_tokens"]) == ("5-8", "4")
    assert cell["verify_ms"] == pytest.approx(simulated.spent["verify"] / simulated.cycles, rel=1e-3)


def test_a_cut_of_verify_is_found_with_an_interval(feed: Feed, web: Web) -> None:
    feed.launch("slow", T0)
    slow = engine(parts={**PARTS, "verify": 45.6}, jitter=0.2)
    play(feed, slow)
    feed.launch("fast", LATER)
    fast = engine(parts={**PARTS, "verify": 45.6 * 0.73}, jitter=0.2, seed=2)
    play(feed, fast, start_ms=LATER)
    found = web.api("/timing/compare", **LONG)
    verify = next(each for each in found["phases"] if each["phase"] == "verify")
    truth = fast.spent["verify"] / fast.cycles / (slow.spent["verify"] / slow.cycles) - 1
    assert verify["change"] == pytest.approx(truth, rel=1e-6)
    assert verify["low"] < -0.27 < verify["high"]
    assert verify["high"] - verify["low"] < 0.1
    assert verify["is_certain"]
    assert found["state"] == "ok"
    assert found["verdict"].startswith("Verify −2")
    draft = next(each for each in found["phases"] if each["phase"] == "draft")
    assert draft["low"] < 0 < draft["high"]
    same = {each["phase"]: each["change"] for each in found["same_batch"]}
    assert same["verify"] == pytest.approx(truth, rel=0.01)


def test_another_load_is_not_taken_for_another_engine(feed: Feed, web: Web) -> None:
    feed.launch("calm", T0)
    play_batches(feed, engine(per_request=2.0), (1, 8))
    feed.launch("busy", LATER)
    play(feed, engine(batch=8, per_request=2.0, seed=3), start_ms=LATER)
    found = web.api("/timing/compare", **LONG)
    verify = next(each for each in found["phases"] if each["phase"] == "verify")
    assert verify["change"] > 0.1
    same = {each["phase"]: each["change"] for each in found["same_batch"]}
    assert same["verify"] == pytest.approx(0, abs=0.01)


def test_two_windows_of_one_launch(feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine())
    middle, end = T0 + 100_000, T0 + 200_001
    found = web.api("/timing/compare", **WINDOW, a=f"{T0}/{middle}", b=f"{middle}/{end}")
    assert found["a"]["cycles"] + found["b"]["cycles"] > 200
    cycle = found["phases"][0]
    assert cycle["change"] == pytest.approx(0, abs=0.02)
    assert found["state"] == "unknown"


def test_sides_without_a_common_level_are_not_compared(feed: Feed, web: Web) -> None:
    feed.launch("one", T0)
    play(feed, engine("probe"))
    feed.launch("two", LATER)
    play(feed, engine("timer"), start_ms=LATER)
    found = web.api("/timing/compare", **LONG)
    assert found["evidence"] == "none"
    assert "in common" in found["verdict"]


def test_a_single_launch_has_nothing_to_be_compared_with(feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine())
    assert "no launch before" in web.api("/timing/compare", **WINDOW)["verdict"]


@pytest.mark.parametrize("sources", ["probe", "timer"])
def test_the_rank_that_comes_late_is_named(sources: str, feed: Feed, web: Web) -> None:
    feed.launch(parallelism=Parallelism(tp_size=4, dp_size=1, pp_size=1))
    engines = [
        engine(sources, labels=rank_labels(tp=rank), late_ms=4.0 if rank == 2 else 0.0) for rank in range(4)
    ]
    play(feed, *engines)
    found = web.api("/timing/ranks", **WINDOW)
    assert found["straggler"] == "dp 0, pp 0, tp 2"
    assert found["skew"] == pytest.approx(4 / 30, rel=0.05)
    assert {check["name"]: check["passed"] for check in found["checks"]} == {
        "ranks of a group run the same cycles": True,
        "every rank reports times": True,
    }


def test_even_ranks_have_no_straggler_and_missing_ones_are_said(feed: Feed, web: Web) -> None:
    feed.launch(parallelism=Parallelism(tp_size=4, dp_size=1, pp_size=1))
    play(feed, *(engine("timer", labels=rank_labels(tp=rank)) for rank in range(3)))
    found = web.api("/timing/ranks", **WINDOW)
    assert found["straggler"] is None
    complete = found["checks"][1]
    assert complete["passed"] is False
    assert complete["message"] == "3 of 4 ranks: missing tp 3"


def test_ranks_that_run_other_cycles_are_out_of_step(feed: Feed, web: Web) -> None:
    feed.launch(parallelism=Parallelism(tp_size=2, dp_size=1, pp_size=1))
    play(feed, engine("timer"), engine("timer", labels=rank_labels(tp=1), idle_share=0.4))
    assert web.api("/timing/ranks", **WINDOW)["checks"][0]["passed"] is False


def test_data_parallel_schedulers_add_up(feed: Feed, web: Web) -> None:
    feed.launch(parallelism=Parallelism(tp_size=1, dp_size=2, pp_size=1))
    engines = [engine("probe timer", labels=rank_labels(dp=rank), seed=rank) for rank in range(2)]
    play(feed, *engines)
    found = summary(web)
    assert found["cycles"] == sum(one.cycles for one in engines)
    assert found["wall_seconds"] == pytest.approx(2 * 200, rel=0.01)
    one = summary(web, rank=1)
    assert one["cycles"] == engines[1].cycles
    busy = sum(each.busy_ms for each in engines) / 2
    assert found["tokens_per_second"]["value"] == pytest.approx(
        1e3 * sum(each.tokens for each in engines) / busy, rel=0.02
    )
