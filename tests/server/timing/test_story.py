"""The demo's story through the product's own mapping and store: verify 95 % of a cycle, then 27 % less."""

from __future__ import annotations

import pytest
from tests.demo.playing import STARTED_MS, player, running
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_collectors.counter_memory import CounterMemory
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import advance
from specscope_collectors.observations import Level
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import WANTED
from specscope_server.demo.model import CycleModel
from specscope_server.demo.story import LaunchPlan, Load, Phase, Story

SPEED, SECONDS, STEP_MS = 1.0, 240.0, 4_000


def told(version: str, feed: Feed) -> None:
    """Play the launch before the tuning and the one after it, and send what scrapes would."""
    phases = tuple(
        Phase(name, SECONDS, Load(benchmark=True), LaunchPlan(CycleModel(5, network_tuned=tuned)))
        for name, tuned in (("slow", False), ("tuned", True))
    )
    subject = player(version, story=Story(SPEED, phases))
    memory, index = CounterMemory(), -1
    for elapsed_ms in range(0, int(2_000 * SECONDS), STEP_MS):
        subject.advance(STARTED_MS + elapsed_ms)
        if subject.current is None:
            continue
        scheduler, time_ms = running(subject), T0 + elapsed_ms
        if scheduler.launch.index != index:
            index, memory = scheduler.launch.index, CounterMemory()
            feed.launch(f"launch-{index}", time_ms, engine_version=version, is_demo=True, speculative={
                "num_steps": 5, "num_draft_tokens": 6,
            })  # fmt: skip
        body = subject.metrics(scheduler).encode()
        mapped = map_exposition(parse_exposition(body, max_series=20_000, wanted=WANTED))
        step = advance(memory, mapped.counters, mapped.histograms, time_ms)
        memory = step.memory
        levels = [
            Level(metric=metric, labels=dict(labels), time_ms=time_ms, value=value)
            for (metric, labels), value in mapped.levels.items()
        ]
        feed.send(*step.increments, *levels)


@pytest.mark.parametrize(("version", "level"), [("0.5.23", "probe"), ("0.5.8", "device_timer")])
def test_the_story(version: str, level: str, feed: Feed, web: Web) -> None:
    told(version, feed)
    window = {"server": SERVER, "from_": T0, "to": NOW}
    launches = [item["id"] for item in web.api(f"/servers/{SERVER}/launches")["launches"]]
    before = web.api("/timing/summary", **window, launch=min(launches))
    assert before["evidence"] == level
    main = "verify" if level == "probe" else "round"
    compared = web.api("/timing/compare", **window)
    change = next(each for each in compared["phases"] if each["phase"] == main)
    if level == "probe":
        assert before["verify_share"]["value"] == pytest.approx(0.95, abs=0.005)
        assert before["verdict"]["headline"].startswith("Nothing was read lately") is False
        assert "Verify takes 95 % of the cycle: 1 ms less of it would give +" in before["verdict"]["headline"]
        assert change["low"] < -0.27 < change["high"]
        assert compared["verdict"].startswith("Verify −27.")
        page = web.get("/time", params={"server": SERVER, "from": str(T0), "to": str(NOW)}).text
        assert "launch 2 against launch 1" in page
        assert "Verify −27." in page
    else:
        assert change["change"] == pytest.approx(-0.26, abs=0.01)
    assert change["high"] - change["low"] < 0.02
    assert [check["name"] for check in before["checks"] if check["passed"] is False] == []
    rate = before["tokens_per_second"]["value"] * before["cycle_time"]["value"] / 1_000
    assert rate == pytest.approx(
        before["requests_per_cycle"]["value"] * before["accept_length"]["value"], rel=0.02
    )
