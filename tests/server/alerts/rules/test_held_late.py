"""Baselines that stand still at the edges: a launch that has just begun, samples that come late."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine
from tests.server.alerts.rules.support import rule_of
from tests.server.alerts.rules.test_lasting import (
    BAD,
    GOOD,
    SHORT,
    at,
    evaluating,
    fires_live,
    hours,
    readings_of,
)  # fmt: skip
from tests.server.seed import Feed

from specscope_server.alerts.pipeline.evaluating import Step, evaluate_once
from specscope_server.alerts.rules.reading import Status
from specscope_server.alerts.rules.reads import READ_ANEW_MS
from specscope_server.store.ingest import IngestWriter

STEP_MS = 300_000


@pytest.mark.parametrize(("pending_for", "fired"), [("0s", 0.15), ("10m", 0.3)])
def test_a_run_chosen_just_after_its_start_fires_and_ends(
    sqlite_engine: Engine, pending_for: str, fired: float
) -> None:
    """The canary is the yardstick of a server that was bad before it began, and is mended later."""
    writer = IngestWriter(sqlite_engine, lambda: at(6))
    canary, other = Feed(writer, "canary:1"), Feed(writer, "gpu1:1")
    canary.launch("k2", time_ms=at(1))
    other.launch(time_ms=at(0))
    hours(canary, 1, 3, GOOD)
    hours(other, 0, 2, BAD)
    hours(other, 2, 2, GOOD)
    condition = {**SHORT, "drop": 0.1, "baseline": "launch:1", "match": {"server": "gpu1:1"}}
    rule = rule_of(condition, name="yardstick", **{"for": pending_for})
    for now_ms in range(at(1), at(4), STEP_MS):
        step = Step(STEP_MS)
        evaluate_once(sqlite_engine, lambda _: [rule], evaluating(sqlite_engine, now_ms), now_ms, step)
    [(begun, over, why)] = list(fires_live(sqlite_engine, "yardstick"))
    assert at(1) < begun <= at(1 + fired)
    assert over is not None
    assert at(2) < over < at(2.5), why


@pytest.mark.parametrize(
    "condition",
    [
        {**SHORT, "baseline_window": "2h", "drop": 0.1},
        {
            "kind": "change_point", "signal": "acceptance.accept_length", "window": "5m", "history": "2h",
            "direction": "down",
        },
        {**SHORT, "baseline": "previous_launch", "drop": 0.1},
    ],
    ids=["preceding", "change point", "launch before"],
)  # fmt: skip
def test_what_comes_late_into_a_baseline_that_stands_still_is_seen(
    sqlite_engine: Engine, condition: dict[str, Any]
) -> None:
    """A collector was cut off: its newest minutes come first, those of before an alert began later."""
    feed = Feed(IngestWriter(sqlite_engine, lambda: at(12)))
    feed.launch(time_ms=at(0))
    if "baseline" in condition:
        feed.launch("k2", time_ms=at(2.75))
    hours(feed, 2.75, 1, BAD)
    rule, held_ms, now_ms = rule_of(condition), at(3), at(3.3)
    [before] = readings_of(sqlite_engine, rule, now_ms, held_ms)
    assert before.status is not Status.BREACH
    feed.launch_key = "a1"
    hours(feed, 0, 2.7, GOOD)
    [later] = readings_of(sqlite_engine, rule, now_ms + READ_ANEW_MS, held_ms)
    assert later.status is Status.BREACH, later.reason
