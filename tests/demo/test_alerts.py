"""The demo's alerts: those of the story in their order, each with its end; none on a healthy day or night."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.demo.playing import STARTED_MS
from tests.demo.stage import Stage

from specscope_server.alerts.rules.backtest import Backtest, backtest
from specscope_server.alerts.rules.files import read_rules
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.schema import Rule
from specscope_server.demo.alert_rules import HURRIED, INTERVAL_SECONDS, LEAST_WINDOW_MS, alerts_file
from specscope_server.demo.model import CycleModel
from specscope_server.demo.story import LOAD_CYCLE_SECONDS, LaunchPlan, Load, Phase, Story
from specscope_server.kit.web.state import AppState

SPEED = 30.0
UNTIL_SECONDS = 228
"""From the wrong layers to the first steps of the sweep; what fired before is over by then."""
SCRAPE_SECONDS = 2
DAY_SCRAPE_SECONDS = 60


def written_out() -> list[dict[str, Any]]:
    """Return the shipped rules as `specscope demo` takes them."""
    return [rule.model_dump(mode="json", by_alias=True) for rule in pack().values()]


def changes(stage: Stage) -> Iterator[tuple[str, str, str, str]]:
    """Yield rule, slot, new state and reason of each change, in order."""
    history = stage.web.api(
        "/alerts/history", from_=str(STARTED_MS), to=str(stage.now_ms + 1), limit=1000
    )  # fmt: skip
    for row in reversed(history["transitions"]):
        yield row["rule"], row["labels"].get("slot", ""), row["to_state"], row["reason"]


def test_the_story_raises_its_alerts_in_order_and_ends_them(sqlite_engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_text(alerts_file(written_out(), SPEED))
    stage = Stage(sqlite_engine, Story(SPEED), tmp_path / "spool", SCRAPE_SECONDS, alerts=path)
    stage.upload_references()
    stage.play(UNTIL_SECONDS, 2 * INTERVAL_SECONDS, stage.alerting.turn)
    found = list(changes(stage))
    fired = [(rule, slot) for rule, slot, state, _ in found if state == "firing"]
    over = [(rule, slot) for rule, slot, state, _ in found if state == "resolved"]
    slots = [("norm-drift", slot) for slot in "012"]
    order = list(dict.fromkeys(rule for rule, _ in fired))
    assert order == ["norm-drift", "dead-draft", "configuration-changed"]
    assert sorted(pair for pair in fired if pair[0] == "norm-drift") == slots
    assert set(over) == set(fired)
    listed = stage.web.api("/alerts")
    assert listed["health"] == "ok"
    assert not [alert for alert in listed["alerts"] if alert["state"] in ("firing", "recovering")]
    resolved = stage.web.api("/alerts", state="resolved")["alerts"]
    assert resolved
    assert all(alert["is_demo"] for alert in resolved)
    assert "Slot 0 is the embedding" in next(reason for rule, slot, _, reason in found if slot == "0")


def test_a_healthy_day_with_an_idle_night_raises_none(sqlite_engine: Engine) -> None:
    load = Load(rate=0.2, daily=True)
    day = Phase("a day", float("inf"), load, LaunchPlan(CycleModel(2)))
    stage = Stage(sqlite_engine, Story(1.0, (day,)), None, DAY_SCRAPE_SECONDS)
    stage.play(LOAD_CYCLE_SECONDS)
    found = replayed(stage)
    assert {name: answer.fires for name, answer in found.items() if answer.fires} == {}
    assert not [text for answer in found.values() for text in answer.problems]
    acceptance = found["dead-draft"].counts
    assert acceptance["ok"] > 120  # minutes of work that were judged …
    assert acceptance["no_data"] > 45  # … and of the night, in which the gauges stand still
    assert found["scrape-down"].counts == {"ok": sum(acceptance.values())}


def replayed(stage: Stage) -> Mapping[str, Backtest]:
    """Return what each shipped rule would have said of the whole time, minute by minute."""
    state = AppState(stage.engine, stage.clock, DAY_SCRAPE_SECONDS * 1_000)
    with Session(stage.engine) as session:
        return {
            name: backtest(session, state, rule, STARTED_MS, stage.now_ms, 60_000)
            for name, rule in pack().items()
        }


def times(rule: Rule) -> list[int]:
    """Return all lengths of time of a rule, in ms."""
    conditions = [rule.condition, *getattr(rule.condition, "conditions", [])]
    windows = [getattr(each, "window", 0) for each in conditions]
    return [rule.for_, rule.keep_firing_for, *windows]


@pytest.mark.parametrize("speed", [0.5, 1.0, 30.0, 10_000.0])
def test_rules_are_hurried_as_the_story_is(speed: float) -> None:
    rules = {rule.name: rule for rule in read_rules(alerts_file(written_out(), speed), "demo").rules}
    assert rules.keys() == pack().keys()
    assert rules.keys() >= HURRIED
    for name, rule in rules.items():
        shipped = pack()[name]
        if speed <= 1 or name not in HURRIED:
            assert rule == shipped
            continue
        for_, keep, *windows = zip(times(shipped), times(rule), strict=True)
        assert [now for _, now in (for_, keep)] == [round(before / speed) for before, _ in (for_, keep)]
        assert all(now == max(round(before / speed), LEAST_WINDOW_MS) for before, now in windows if before)
        assert "Demo" in rule.description
