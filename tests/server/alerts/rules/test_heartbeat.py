"""A heartbeat goes the way of every alert, every few minutes, and is nothing that is wrong."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session
from tests.server.alerts.rules.support import rule_of, state_of
from tests.server.alerts.test_running import Process
from tests.server.seed import NOW

from specscope_server.alerts.channels import notification as notifications
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.rules.backtest import backtest
from specscope_server.models import Delivery
from specscope_server.store.engine import write_transaction

FILE = """
rules:
  - name: heartbeat
    title: Specscope is watching
    severity: info
    condition: {kind: heartbeat}
channels:
  - {name: dead-man, kind: webhook, url: "https://ping.example.org/x"}
  - {name: oncall, kind: webhook, url: "https://oncall.example.org/x"}
routes:
  - {match: {rule: heartbeat}, channels: [dead-man], group_wait: 0s, repeat_interval: 5m}
  - {channels: [oncall]}
"""


@pytest.fixture
def process(sqlite_engine: Engine, tmp_path: Path) -> Process:
    path = tmp_path / "alerts.yaml"
    path.write_text(FILE)
    return Process(sqlite_engine, path)


def told(store: Engine) -> list[tuple[str, int, Notification]]:
    """Return (channel, when, what) of all that is to be delivered, and have it arrive."""
    with Session(store) as session:
        rows = session.scalars(select(Delivery).order_by(Delivery.id))
        found = [(row.channel, row.created_ms, notifications.decode(row.notification)) for row in rows]
    with write_transaction(store) as connection:
        connection.execute(update(Delivery).values(status="sent"))
    return found


def test_it_is_told_every_five_minutes_while_everything_works(process: Process) -> None:
    for _ in range(81):  # 20 minutes
        process.turn()
        found = told(process.app.state.alerting._engine)
    assert {channel for channel, _, _ in found} == {"dead-man"}
    times = [at_ms for _, at_ms, _ in found]
    assert [later - sooner for sooner, later in pairwise(times)] == [300_000] * 4
    assert [each.cause for _, _, each in found] == ["new", *["repeat"] * 4]
    assert all(each.firing[0].reason.startswith("Specscope evaluates") for _, _, each in found)


def test_it_stops_with_the_evaluation(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.turn()

    def fail() -> None:
        raise RuntimeError("no evaluation today")

    monkeypatch.setattr(process.alerting, "evaluate", fail)
    for _ in range(81):
        process.turn()
    assert len(told(process.app.state.alerting._engine)) == 1


def test_it_is_nothing_that_is_wrong(process: Process) -> None:
    process.turn()
    process.turn()
    [item] = process.web.api("/alerts")["alerts"]
    assert (item["state"], item["is_heartbeat"], item["labels"].get("server")) == ("firing", True, None)
    page = process.web.get("/alerts").text
    assert "Nothing fires" in page
    assert "heartbeat for" in page
    assert "alert fires" not in process.web.get("/").text


def test_its_back_test_is_one_fire(sqlite_engine: Engine) -> None:
    rule = rule_of({"kind": "heartbeat"}).rule
    with Session(sqlite_engine) as session:
        found = backtest(session, state_of(sqlite_engine), rule, NOW - 3_600_000, NOW, 15_000)
    assert [(fire.labels, fire.resolved_ms) for fire in found.fires] == [({}, None)]
