"""What reaches the store late is judged all the same, once."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.server.alerts.rules.shipped import ask, at
from tests.server.alerts.rules.support import MINUTE, readings, rule_of
from tests.server.seed import NOW, T0, Feed, growth, rank_labels

from specscope_collectors.observations import Event
from specscope_server.alerts import lease
from specscope_server.alerts.rules import arrivals
from specscope_server.alerts.rules.reading import Reading, Status
from specscope_server.store.ingest import IngestWriter

CHANGED = {"changes": {"num_steps": ["3", "5"]}}


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    found = Feed(IngestWriter(sqlite_engine, lambda: NOW))
    found.launch()
    return found


def changed(store: Engine, now_ms: int) -> Reading:
    [found] = [one for one in ask(store, "configuration-changed", now_ms) if one.evidence.get("event") != "x"]
    return found


def told(feed: Feed, time_ms: int) -> None:
    feed.send(Event(kind="config_change", time_ms=time_ms, message="changed: steps", detail=CHANGED))


def test_the_due_time_is_read_where_it_is_written() -> None:
    assert arrivals.DUE == lease.DUE


def test_an_event_that_is_told_late_counts_from_then_and_once(sqlite_engine: Engine, feed: Feed) -> None:
    now = T0 + 60 * MINUTE
    assert changed(sqlite_engine, now).status is Status.OK
    told(feed, now - 30 * MINUTE)
    told(feed, now - 400 * MINUTE)  # long ago: history
    for minutes in range(1, 11):
        found = changed(sqlite_engine, now + minutes * MINUTE)
        assert found.status is Status.BREACH, minutes
        assert found.value == 1
    assert "31 min later" in found.reason
    assert found.evidence["time_ms"] == now - 30 * MINUTE
    for minutes in range(11, 40):
        assert changed(sqlite_engine, now + minutes * MINUTE).status is Status.OK, minutes


def test_an_event_while_nothing_was_evaluated_counts_at_the_next_start(
    sqlite_engine: Engine, feed: Feed
) -> None:
    now = T0 + 60 * MINUTE
    told(feed, now - 90 * MINUTE)  # judged before
    told(feed, now - 30 * MINUTE)
    assert changed(sqlite_engine, now).status is Status.OK, "nothing is known of an evaluation before"
    arrivals._looks.clear()
    lease.note(sqlite_engine, lease.DUE, "gone", now - 60 * MINUTE)
    found = changed(sqlite_engine, now)
    assert (found.status, found.value) == (Status.BREACH, 1)


def test_rows_that_are_not_finite_are_judged_late(sqlite_engine: Engine, feed: Feed) -> None:
    labels = {**rank_labels(), "kind": "nonfinite_rows"}
    feed.send(growth("states.invariants", 3.0, at(1), labels))
    found = [one.status for one in ask(sqlite_engine, "non-finite-states", at(1) + 40 * MINUTE)]
    assert found == [Status.BREACH]


def test_a_rule_of_many_points_looks_at_when_events_happened(sqlite_engine: Engine, feed: Feed) -> None:
    rule = rule_of({"kind": "event", "events": ["config_change"], "window": "10m"})
    now = T0 + 60 * MINUTE
    told(feed, now - 5 * MINUTE)
    [found] = readings(sqlite_engine, now, rule)
    assert found.status is Status.BREACH
    assert "later" not in found.reason
