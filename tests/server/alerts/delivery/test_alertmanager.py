"""A real Alertmanager takes alerts and their ends, and what it passes on has the same shape as our own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import Desk
from tests.support.alertmanager import alerts_of, running_alertmanager, until
from tests.support.cards import card, hostile, notification
from tests.support.receiver import Receiver

from specscope_server.alerts.delivery.asking import try_channel


def real_now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_it_takes_fires_and_ends(sqlite_engine: Engine, tmp_path: Path) -> None:
    desk = Desk(sqlite_engine, now_ms=real_now_ms())  # it reckons with the real time
    fire = card(starts_ms=desk.now_ms - 60_000)
    with (
        Receiver().running() as passed_on,
        Receiver().running() as own,
        running_alertmanager(tmp_path, passed_on.url) as url,
    ):
        desk.channels(
            {"name": "am", "kind": "alertmanager", "url": url},
            {"name": "hook", "kind": "alertmanager_webhook", "url": own.url},
        )
        desk.tell(notification(fire, hostile(7)), "am")
        desk.tell(notification(fire), "hook")
        desk.deliver()
        assert {row.status for row in desk.rows()} == {"sent"}
        active = {alert["labels"]["server"]: alert for alert in alerts_of(url) if "server" in alert["labels"]}
        assert active["gpu1:30000"]["labels"]["alertname"] == "dead-draft"
        assert active["gpu1:30000"]["status"]["state"] in ("active", "unprocessed")
        assert active["gpu1:30000"]["generatorURL"].startswith("https://specscope.example/acceptance")
        until(lambda: bool(_of(passed_on, "firing")), 20)

        desk.now_ms = real_now_ms()
        over = card(status="resolved", starts_ms=fire.starts_ms, ends_ms=desk.now_ms - 1_000)
        desk.tell(notification(over), "am")
        desk.deliver()
        assert not [each for each in alerts_of(url) if each["labels"].get("server") == "gpu1:30000"]
        until(lambda: bool(_of(passed_on, "resolved")), 20)
    theirs, ours = _of(passed_on, "firing")[0], json.loads(own.received[0].body)["alerts"][0]
    assert set(theirs) == set(ours)  # fields of an alert
    assert {name: theirs[name] for name in ("labels", "status", "annotations", "generatorURL")} == {
        name: ours[name] for name in ("labels", "status", "annotations", "generatorURL")
    }
    assert set(json.loads(passed_on.received[0].body)) == set(json.loads(own.received[0].body))


def _of(receiver: Receiver, status: str) -> list[dict[str, Any]]:
    """Return our alert with this status, as the Alertmanager passed it on."""
    alerts = [alert for got in receiver.received for alert in json.loads(got.body)["alerts"]]
    return [
        alert
        for alert in alerts
        if alert["status"] == status and alert["labels"].get("server") == "gpu1:30000"
    ]


def test_the_test_button_reaches_it(sqlite_engine: Engine, tmp_path: Path) -> None:
    desk = Desk(sqlite_engine, now_ms=real_now_ms())
    with Receiver().running() as passed_on, running_alertmanager(tmp_path, passed_on.url) as url:
        desk.channels({"name": "am", "kind": "alertmanager", "url": url})
        assert try_channel(desk.engine, "am", "api", desk.clock, desk.options).outcome == "delivered"
        assert [alert["labels"]["alertname"] for alert in alerts_of(url)] == ["channel-test"]
