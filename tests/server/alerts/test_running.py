"""The loops of the server: file, lease, health and metrics; and the whole way with the real rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine, event
from tests.server.alerts.standin import T0
from tests.server.client import Web

from specscope_server.alerts import lease
from specscope_server.alerts.file import read_alerts_file
from specscope_server.alerts.running import Alerting
from specscope_server.app import create_app
from specscope_server.cli import serve
from specscope_server.kit.errors import InvalidInput
from specscope_server.settings import Settings

FILE = """
rules:
  - name: silent-server
    title: Nothing comes from a server
    condition: {kind: absence, signal: acceptance.accept_length, window: 5m}
channels:
  - {name: oncall, kind: webhook, url: "https://oncall.example.org/hook"}
  - {name: chat, kind: webhook, url: "https://chat.example.org/hook"}
routes:
  - {match: {severity: critical}, channels: [oncall], group_wait: 0s, continue: true}
  - {channels: [chat], group_by: [server], repeat_interval: 12h}
"""


class Process:
    """One server over a database; time stands still unless it is moved."""

    def __init__(self, engine: Engine, alerts: Path | None = None) -> None:
        self.now_ms = T0
        settings = Settings(alerts=alerts)
        self.app = create_app(settings, engine=engine, clock=lambda: self.now_ms)
        self.web = Web(self.app)

    @property
    def alerting(self) -> Alerting:
        found: Alerting = self.app.state.alerting
        return found

    def turn(self, seconds: float = 15) -> None:
        """Move time and let the process do what it does from time to time."""
        self.now_ms += round(seconds * 1_000)
        self.alerting.turn()

    def metric(self, name: str) -> float | None:
        """Return a value at /metrics."""
        families = text_string_to_metric_families(self.web.get("/metrics").text)
        return next((s.value for family in families for s in family.samples if s.name == name), None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "alerts.yaml"
    found.write_text(FILE)
    return found


def test_pack_and_file_are_in_force(sqlite_engine: Engine, path: Path) -> None:
    process = Process(sqlite_engine, path)
    process.turn()
    rules = {rule["name"]: rule["origin"] for rule in process.web.api("/alerts/rules")["rules"]}
    assert rules["silent-server"] == "file"
    assert len([origin for origin in rules.values() if origin == "pack"]) >= 15
    assert [each["name"] for each in process.web.api("/alerts/channels")["channels"]] == ["chat", "oncall"]
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok"


def test_the_pack_is_on_without_a_file(sqlite_engine: Engine) -> None:
    process = Process(sqlite_engine)
    process.turn()
    rules = process.web.api("/alerts/rules")["rules"]
    assert {rule["origin"] for rule in rules} == {"pack"}
    assert process.metric("specscope_alerts_rules") == sum(rule["enabled"] for rule in rules)
    assert process.metric("specscope_alerts_last_evaluation_timestamp_seconds") == process.now_ms / 1_000
    assert process.metric("specscope_alerts_firing") == 0
    assert process.metric("specscope_alerts_outbox") == 0


def test_the_file_is_followed_and_a_broken_one_changes_nothing(sqlite_engine: Engine, path: Path) -> None:
    process = Process(sqlite_engine, path)
    process.turn()
    path.write_text("rules: [{name: x}]")
    process.turn()
    process.turn()
    assert "cannot be used" in process.web.get("/readyz").json()["checks"]["alerts"]
    assert any(rule["name"] == "silent-server" for rule in process.web.api("/alerts/rules")["rules"])
    for cut in ("", "rules:\n", None):  # being saved, cut off, gone
        path.unlink() if cut is None else path.write_text(cut)
        process.turn()
        process.turn()
        assert "cannot be used" in process.web.get("/readyz").json()["checks"]["alerts"]
        assert any(rule["name"] == "silent-server" for rule in process.web.api("/alerts/rules")["rules"])
        assert [each["name"] for each in process.web.api("/alerts/channels")["channels"]] == [
            "chat",
            "oncall",
        ]
    path.write_text(FILE.replace("silent-server", "quiet-server"))
    process.turn()
    process.turn()
    names = {rule["name"] for rule in process.web.api("/alerts/rules")["rules"]}
    assert "quiet-server" in names
    assert "silent-server" not in names
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok"


def test_every_problem_of_a_file_is_told_at_once(path: Path) -> None:
    path.write_text(
        FILE.replace("chat]", "chta]").replace("repeat_interval: 12h", "repeat: 12h, group_wait: soon")
    )
    with pytest.raises(InvalidInput) as caught:
        read_alerts_file(path)
    for part in ("routes[2]", "repeat: a route has no such setting", "group_wait", "line 11"):
        assert part in caught.value.detail


def test_a_route_to_a_channel_that_is_not_there_is_told(path: Path) -> None:
    path.write_text(FILE.replace("channels: [chat]", "channels: [chta]"))
    with pytest.raises(InvalidInput, match=r"no channel 'chta' in this file; it has oncall, chat"):
        read_alerts_file(path)


def test_a_start_with_a_broken_file_is_refused(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text("rulse: []")
    database = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    assert serve.main(["--alerts", str(path), "--port", "0", "--database", database]) == 2
    assert "rulse" in capsys.readouterr().err


def test_one_of_two_processes_evaluates(store_engine: Engine) -> None:
    first, second = Process(store_engine), Process(store_engine)
    for process in (first, second, first, second):
        process.turn()
    assert first.alerting.last is not None
    assert second.alerting.last is None
    assert second.web.get("/readyz").json()["checks"]["alerts"] == "ok"
    second.turn(seconds=300)
    assert second.alerting.last is not None, "it takes over when the first is gone"
    second.alerting.give_up()
    first.now_ms = second.now_ms
    assert lease.take(store_engine, lease.EVALUATION, "third", first.now_ms, 10_000)


def test_a_lease_of_a_clock_that_was_wrong_is_not_respected(sqlite_engine: Engine) -> None:
    assert lease.take(sqlite_engine, "x", "mad", T0 + 10**10, 10_000)
    assert lease.take(sqlite_engine, "x", "sane", T0, 10_000)
    assert not lease.take(sqlite_engine, "x", "other", T0 + 9_999, 10_000)
    assert lease.take(sqlite_engine, "x", "other", T0 + 10_000, 10_000)


def test_an_error_is_counted_and_the_next_turn_goes_on(sqlite_engine: Engine) -> None:
    process = Process(sqlite_engine)

    def refuse(*_: object) -> None:
        raise RuntimeError("no database today")

    event.listen(sqlite_engine, "begin", refuse)
    process.turn()
    event.remove(sqlite_engine, "begin", refuse)
    assert process.metric("specscope_alerts_failures_total") == 1
    process.turn()
    assert process.alerting.last is not None
