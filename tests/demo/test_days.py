"""No shipped rule raises anything on a healthy day, in an idle night, by few requests, on a Monday morning.

All is there that rules read: metrics, the probe's times and states with what the draft was trained on,
finished requests, a canary, and a launch without speculation before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.demo.days import DAY, SETTLED_SECONDS, Hours
from tests.demo.playing import STARTED_MS
from tests.demo.stage import Stage

from specscope_server.alerts.rules.backtest import Backtest, backtest
from specscope_server.alerts.rules.packed import pack
from specscope_server.kit.web.state import AppState

SCRAPE_SECONDS, REPLAY_STEP_MS = 60, 180_000
EVERY_SECONDS = 120
"""How often the running server evaluates; the back-test looks at times of its own."""
JUDGED = {
    "acceptance-drop", "dead-draft", "first-position-low", "speculation-losing", "suffix-collapse",
    "verify-slower",
}  # fmt: skip
"""Rules that only traffic lets judge."""
ALWAYS = {"configuration-changed", "scrape-stale"}
SEEDS = 8


def played(
    engine: Engine, folder: Path, hours: Hours, seed: int, every_seconds: int = EVERY_SECONDS
) -> Stage:
    """Let the hours pass, with the rules evaluated as the server does."""
    stage = Stage(
        engine, hours.story(), folder / "spool", SCRAPE_SECONDS, seed=seed, before_reading=hours.ask,
        rest=hours.rest,
    )  # fmt: skip
    stage.upload_references()
    due_ms = STARTED_MS + round(hours.stretches[DAY][0] + SETTLED_SECONDS) * 1_000

    def evaluate() -> None:
        nonlocal due_ms
        if stage.now_ms >= due_ms:
            stage.alerting.turn()
            due_ms = stage.now_ms + every_seconds * 1_000

    stage.play(hours.seconds, SCRAPE_SECONDS, evaluate)
    return stage


def changes(stage: Stage) -> list[Any]:
    """Return all that happened to any alert, pending included."""
    history = stage.web.api(
        "/alerts/history", from_=str(STARTED_MS), to=str(stage.now_ms + 1), limit=1000
    )  # fmt: skip
    return [
        (row["rule"], row["labels"], row["to_state"], row["at"], row["reason"])
        for row in history["transitions"]
    ]


def replayed(stage: Stage, hours: Hours) -> Mapping[str, Backtest]:
    """Return what each shipped rule would have said at each step."""
    state = AppState(stage.engine, stage.clock, SCRAPE_SECONDS * 1_000)
    begin_ms = STARTED_MS + round(hours.stretches[DAY][0] + SETTLED_SECONDS) * 1_000
    with Session(stage.engine) as session:
        return {
            name: backtest(session, state, rule, begin_ms, stage.now_ms, REPLAY_STEP_MS)
            for name, rule in pack().items()
        }


def check(stage: Stage, hours: Hours) -> None:
    """Nothing fired, though every rule looked."""
    assert stage.alerting.last
    assert not stage.alerting.last.problems
    assert [change for change in changes(stage) if change[2] == "firing"] == []
    found = replayed(stage, hours)
    assert {name: answer.fires for name, answer in found.items() if answer.fires} == {}
    assert not [text for answer in found.values() for text in answer.problems]
    instants = found["scrape-down"].instants
    for name in JUDGED:
        assert found[name].counts.get("ok", 0) > 15, f"{name} hardly looked: {found[name].counts}"
        assert found[name].counts.get("no_data", 0) > 60, f"{name} judged the night: {found[name].counts}"
    for name in ALWAYS:
        assert found[name].counts == {"ok": instants}
    assert found["scrape-down"].counts["ok"] > 0.8 * instants  # the rest is where nothing was read for 4 min
    assert not [name for name, answer in found.items() if answer.counts.keys() - {"ok", "no_data", "breach"}]
    assert found["norm-drift"].counts["ok"] > 3 * 60


def test_healthy_hours_raise_nothing(sqlite_engine: Engine, tmp_path: Path) -> None:
    hours = Hours(day=2, idle=8, few=0.75)
    check(played(sqlite_engine, tmp_path, hours, seed=7), hours)


@pytest.mark.benchmark
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_whole_healthy_day_raises_nothing_at_any_seed(
    sqlite_engine: Engine, tmp_path: Path, seed: int
) -> None:
    """24 h from midnight to midnight, an idle night with gaps, few requests, and a Monday morning."""
    # With 1, 4 or 5 steps, speculation does lose here.
    hours = Hours(day=24, idle=3, few=1, num_steps=2 + seed % 2)
    check(played(sqlite_engine, tmp_path, hours, seed, every_seconds=SCRAPE_SECONDS), hours)
