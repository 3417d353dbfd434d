"""What a card says of the surroundings: what changed just before, the model, the right page and panel."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.server.alerts.standin import a_reading, a_rule
from tests.store.conftest import NOW, batch, launch

from specscope_collectors.observations import Event
from specscope_server.alerts.card.build import card_of, ended, labels_of
from specscope_server.alerts.card.links import links_of
from specscope_server.alerts.card.surroundings import Surroundings, surroundings_of
from specscope_server.alerts.states.machine import AlertState, State
from specscope_server.store.ingest import IngestWriter

HOUR_MS = 3_600_000
SERVER = "gpu1:30000"


@pytest.fixture
def session(sqlite_engine: Engine) -> Session:
    """A store with two launches, ten minutes ago and two days ago, and a note."""
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    old = launch("a", time_ms=NOW - 48 * HOUR_MS, config={"num_steps": 3, "draft": "x"}, model="qwen")
    new = launch("b", time_ms=NOW - 600_000, config={"num_steps": 5, "draft": "x"}, model="qwen")
    note = Event(time_ms=NOW - 60_000, kind="note", message="deployed build 17", detail={})
    same = Event(time_ms=NOW - 590_000, kind="config_change", message="another configuration", detail={})
    crash = Event(time_ms=NOW - 300_000, kind="restart", message="the log says so", detail={})
    rows = Event(time_ms=NOW - 50_000, kind="state_rows", message="12 sampled rows", detail={})
    early = Event(time_ms=NOW - 3 * HOUR_MS, kind="note", message="long ago", detail={})
    writer.apply(batch(old, sequence=1))
    writer.apply(batch(new, note, early, same, crash, rows, sequence=2, launch="b"))
    return Session(sqlite_engine)


def test_what_changed_just_before(session: Session) -> None:
    found = surroundings_of(session, SERVER, NOW, NOW)
    assert [(change.kind, change.text) for change in found.changes] == [
        ("launch", "num_steps 3 → 5"),
        ("restart", "the log says so"),
        ("note", "deployed build 17"),
    ]
    assert (found.model, found.is_demo) == ("qwen", False)
    session.close()


def test_what_any_start_changes_is_no_change_and_variables_are_named(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    for number, variables in enumerate(({}, {"NCCL_ALGO": "Ring"}, {"NCCL_ALGO": "NVLS"})):
        config = {"num_steps": 3, "random_seed": number, "nccl_port": 30_000 + number, "startup_time": {}}
        at_ms = NOW - (30 - number) * 60_000
        begun = launch(str(number), time_ms=at_ms, config=config, environment=variables, reason="restarted")
        writer.apply(batch(begun, sequence=number + 1, launch=str(number)))
    with Session(sqlite_engine) as session:
        found = surroundings_of(session, SERVER, NOW, NOW)
    assert [change.text for change in found.changes] == [
        "started again with the same configuration (restarted)",
        "env.NCCL_ALGO Ring → NVLS",
    ]


def test_nothing_is_known_of_a_server_that_is_not(session: Session) -> None:
    assert surroundings_of(session, "nope", NOW, NOW) == Surroundings()
    session.close()


def test_labels_of_a_series_cannot_pose_as_the_rules_own() -> None:
    rule = a_rule(labels={"team": "serving", "model": "mine"}).rule
    found = labels_of(rule, {"server": "s", "severity": "critical", "rule": "x"}, "qwen")
    assert found == {
        "server": "s", "team": "serving", "model": "mine", "rule": "low", "severity": "warning",
        "category": "other",
    }  # fmt: skip


def test_the_end_keeps_the_numbers_of_the_fire() -> None:
    state = AlertState("f" * 32, State.FIRING, alert_id="f-1", fired_ms=NOW)
    reading = a_reading(evidence={"page": "/acceptance", "signal": "acceptance.accept_length", "below": 2})
    card = card_of(a_rule().rule, reading, state, Surroundings(), "https://x.example.org")
    over = ended(card, NOW + 1, "it is well")
    assert (over.values, over.reason, over.ends_ms, over.status) == (
        card.values,
        "it is well",
        NOW + 1,
        "resolved",
    )
    assert card.links[0].title == "Acceptance"


def test_hostile_labels_stay_inside_links() -> None:
    labels = {"server": 'a&to=1"><script>'}
    [page, own] = links_of("https://x.example.org", "/time?tab=ranks", "i/../d", labels, NOW, NOW)
    assert page.url.startswith(
        "https://x.example.org/time?tab=ranks&server=a%26to%3D1%22%3E%3Cscript%3E&from="
    )
    assert own.url == "https://x.example.org/alerts/i%2F..%2Fd"
    assert links_of("", "/time", "x", labels, NOW, NOW) == []
