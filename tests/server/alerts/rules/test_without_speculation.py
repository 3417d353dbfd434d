"""A restart without speculation: what was to be said of drafts ends, and the words say why."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.server.alerts.rules.shipped import ask, at
from tests.server.alerts.rules.support import MINUTE, readings, rule_of, state_of
from tests.server.alerts.rules.support import ask as ask_signal
from tests.server.alerts.rules.test_pack import drafts
from tests.server.alerts.test_running import Process
from tests.server.seed import NOW, T0, Feed, growth, level, rank_labels

from specscope_collectors.observations import Observation
from specscope_server.alerts.rules.backtest import backtest
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.reading import Status
from specscope_server.models import AlertTransition
from specscope_server.store.ingest import IngestWriter

DEAD = (0.06, 0.02, 0.0)
PLAIN = {"algorithm": None, "num_steps": None, "num_draft_tokens": None}
RULES = ("dead-draft", "acceptance-drop", "first-position-low", "identity-broken")


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


def plain(feed: Feed, start: int, count: int, *, with_zeros: bool = False) -> None:
    """Send scrapes of an engine that decodes without speculation; some export its gauges as 0."""
    batch: list[Observation] = []
    for index in range(start + 1, start + count + 1):
        time_ms = at(index)
        batch.append(growth("tokens.generated", 300, time_ms))
        batch.append(growth("tokens.decoded", 300, time_ms, rank_labels()))
        batch.append(level("requests.running", 2, time_ms))
        if with_zeros:
            batch += [level(name, 0, time_ms) for name in ("spec.accept_length", "spec.engine_accept_rate")]
            batch.append(growth("spec.cycles", 0, time_ms, rank_labels()))
    feed.send(*batch)


@pytest.mark.parametrize("with_zeros", [False, True])
def test_what_was_said_of_drafts_has_no_series_any_more(
    sqlite_engine: Engine, feed: Feed, with_zeros: bool
) -> None:
    feed.launch()
    drafts(feed, 0, 400, DEAD)
    feed.launch("b2", at(400) + 1, speculative=PLAIN)
    plain(feed, 400, 500, with_zeros=with_zeros)
    for scrapes in (402, 430, 900):  # while windows still hold the draft, and when they do not
        for name in RULES[: None if scrapes == 900 else 3]:
            found = ask(sqlite_engine, name, at(scrapes))
            assert {reading.status for reading in found} <= {Status.GONE}, (name, scrapes, found)
            assert all("speculation" in reading.reason for reading in found), found
    assert ask(sqlite_engine, "dead-draft", at(900))
    [rate] = ask_signal(sqlite_engine, "acceptance.tokens_per_second", at(900))
    assert rate.value[-1] > 0, "what a plain launch has too is still there"


def test_the_alert_ends_as_missing_and_says_why(sqlite_engine: Engine) -> None:
    process = Process(sqlite_engine)
    process.now_ms = T0
    process.alerting.prepare()
    feed = Feed(IngestWriter(sqlite_engine, lambda: process.now_ms))
    feed.launch()
    for start in range(0, 144, 12):
        drafts(feed, start, 12, DEAD)
        process.now_ms = at(start + 12) + 500
        process.alerting.turn()
    feed.launch("b2", at(144) + 1, speculative=PLAIN)
    for start in range(144, 324, 12):
        plain(feed, start, 12)
        process.now_ms = at(start + 12) + 500
        process.alerting.turn()
    query = select(AlertTransition.to_state, AlertTransition.reason).where(
        AlertTransition.rule == "dead-draft"
    )
    with sqlite_engine.connect() as connection:
        told = connection.execute(query.order_by(AlertTransition.id)).all()
    assert [row.to_state for row in told] == ["pending", "firing", "recovering", "resolved"]
    assert told[-1].reason.startswith("the series is missing")
    assert "without speculation" in told[-1].reason


def test_a_backtest_ends_it_too(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    drafts(feed, 0, 200, DEAD)
    feed.launch("b2", at(200) + 1, speculative=PLAIN)
    plain(feed, 200, 400)
    with Session(sqlite_engine) as session:
        state = state_of(sqlite_engine, at(600))
        found = backtest(session, state, pack()["dead-draft"], T0, at(600), 15_000)
    [fire] = found.fires
    assert fire.resolved_ms is not None
    assert fire.resolved_ms <= at(200) + 12 * MINUTE


def test_a_baseline_that_ends_in_a_plain_stretch_still_counts(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    drafts(feed, 0, 400, (0.75, 0.72, 0.7))
    feed.launch("b2", at(400) + 1, speculative=PLAIN)
    plain(feed, 400, 60)
    feed.launch("c3", at(460) + 1)
    drafts(feed, 460, 60, (0.75, 0.72, 0.7))
    rule = rule_of({
        "kind": "relative", "signal": "acceptance.accept_length", "window": "4m", "baseline": "preceding",
        "baseline_window": "1h", "drop": 0.1,
    })  # fmt: skip
    [found] = readings(sqlite_engine, at(520), rule)
    assert found.status is Status.OK, found
