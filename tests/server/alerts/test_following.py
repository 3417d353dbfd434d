"""A file of alerts that is saved in parts, replaced, cut off or left half-written; time is moved by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from sqlalchemy import Engine
from tests.server.alerts.standin import T0
from tests.server.alerts.test_running import Process

from specscope_server.alerts.following import SETTLE_MS, Follower
from specscope_server.alerts.pipeline.evaluating import OFF
from specscope_server.models import AlertState
from specscope_server.store.engine import write_transaction

FIRST = """rules:
  - name: first
    title: One
    condition: {kind: threshold, signal: "metric:requests.queued", above: 1}
"""
SECOND = """  - name: second
    title: Two
    condition: {kind: threshold, signal: "metric:requests.queued", above: 2}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "alerts.yaml"
    found.write_text(FIRST + SECOND)
    return found


@pytest.fixture
def process(sqlite_engine: Engine, path: Path) -> Process:
    """A server that runs since a while, and an alert of the second rule that fires."""
    found = Process(sqlite_engine, path)
    found.turn()
    row = {
        "fingerprint": "f" * 32, "rule": "second", "rule_version": 1, "labels": "{}", "state": "firing",
        "since_ms": T0, "seen_ms": T0, "fired_ms": T0, "alert_id": "f-1", "reading": "{}", "muted_by": "",
        "severity": "warning", "revision": 1,
    }  # fmt: skip
    with write_transaction(sqlite_engine) as connection:
        connection.execute(AlertState.__table__.insert().values(row))  # type: ignore[attr-defined]
    return found


def names(process: Process) -> set[str]:
    return {rule["name"] for rule in process.web.api("/alerts/rules")["rules"] if rule["origin"] == "file"}


def is_ended_with_its_rule(process: Process) -> bool:
    return any(OFF in entry["text"] for entry in process.web.api("/alerts/f-1")["timeline"])


def test_a_file_that_is_cut_between_two_rules_while_it_is_saved_ends_nothing(
    process: Process, path: Path
) -> None:
    text = path.read_text()
    for part in (FIRST, FIRST, text + SECOND.replace("second", "third")):  # a pause, and then the rest
        path.write_text(part)
        process.turn()
        assert names(process) == {"first", "second"}
    process.turn()
    assert names(process) == {"first", "second", "third"}
    assert not is_ended_with_its_rule(process)


def test_a_file_whose_writer_was_killed_is_used_as_it_stays_and_says_what_is_gone(
    process: Process, path: Path
) -> None:
    path.write_text(FIRST)
    process.turn()
    assert names(process) == {"first", "second"}
    with structlog.testing.capture_logs() as logs:
        process.turn()
    assert names(process) == {"first"}
    assert [entry["rules"] for entry in logs if "rules" in entry] == [["second"]]
    audit = process.web.api("/alerts/audit", action="rule.remove")["entries"]
    assert [(entry["actor"], entry["target"]) for entry in audit] == [("file", "second")]
    assert is_ended_with_its_rule(process)


def renamed(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_text(FIRST)
    os.replace(other, path)


def moved_away(path: Path) -> None:
    path.rename(path.with_suffix(".old"))


@pytest.mark.parametrize(
    ("change", "after", "is_usable"),
    [
        (renamed, {"first"}, True),
        (moved_away, {"first", "second"}, False),
        (lambda path: os.truncate(path, 0), {"first", "second"}, False),
        (lambda path: os.truncate(path, len(FIRST) + 20), {"first", "second"}, False),
    ],
    ids=["renamed over it", "moved away", "truncated to nothing", "truncated inside a rule"],
)
def test_what_stays_for_two_looks_counts(
    process: Process, path: Path, change: Callable[[Path], None], after: set[str], is_usable: bool
) -> None:
    change(path)
    process.turn()
    assert names(process) == {"first", "second"}
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok", "too early to say"
    process.turn()
    assert names(process) == after
    assert ("cannot be used" in process.web.get("/readyz").json()["checks"]["alerts"]) is not is_usable


def test_a_file_that_is_there_again_as_it_was_changes_nothing(process: Process, path: Path) -> None:
    away = path.with_suffix(".old")
    path.rename(away)
    process.turn()
    away.rename(path)
    for _ in range(3):
        process.turn()
    assert names(process) == {"first", "second"}
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok"


def test_a_start_uses_the_file_at_once(sqlite_engine: Engine, path: Path) -> None:
    found = Process(sqlite_engine, path)
    path.write_text(FIRST)
    found.alerting.prepare()
    assert names(found) == {"first"}


def test_a_file_that_never_rests_is_told(process: Process, path: Path) -> None:
    for place in range(25):
        path.write_text(FIRST + f"# {place}\n")
        process.turn()
    assert names(process) == {"first", "second"}
    assert "cannot be used" in process.web.get("/readyz").json()["checks"]["alerts"]
    process.turn()
    assert names(process) == {"first"}
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok"


def test_looks_are_apart_however_often_is_looked_and_a_clock_set_back_waits_anew(path: Path) -> None:
    follower = Follower(path)
    assert follower.now().content == path.read_bytes()
    assert follower.settled(T0) is None
    path.write_text(FIRST)
    assert follower.settled(T0) is None
    assert follower.settled(T0 + SETTLE_MS - 1) is None
    assert follower.settled(T0 - 1) is None
    assert follower.settled(T0 + SETTLE_MS - 2) is None
    found = follower.settled(T0 + SETTLE_MS - 1)
    assert found is not None
    assert found.content == FIRST.encode()
    assert follower.settled(T0 + 10 * SETTLE_MS) is None


def test_what_cannot_be_read_is_told_once(process: Process, path: Path) -> None:
    path.unlink()
    path.mkdir()
    with structlog.testing.capture_logs() as logs:
        for _ in range(12):
            process.turn()
    assert [entry["log_level"] for entry in logs if "alerts" in entry["event"]].count("error") == 1
    assert names(process) == {"first", "second"}
    assert "cannot be" in process.web.get("/readyz").json()["checks"]["alerts"]
