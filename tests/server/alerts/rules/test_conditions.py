"""Each kind of condition on real data: where it breaches, where it must not, and what it says."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.server.alerts.rules.support import MINUTE, readings, rule_of, state_of
from tests.server.seed import NOW, SCRAPE_MS, SERVER, T0, Feed, growth, rank_labels

from specscope_collectors.observations import Event
from specscope_server.alerts.rules.backtest import backtest
from specscope_server.alerts.rules.evaluate import evaluate
from specscope_server.alerts.rules.reading import Cause, Status
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.retention import Retention, enforce

HALF_HOUR = 360
"""Scrapes."""


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


def counted(feed: Feed, start: int, count: int, accepted: float, cycles: float = 40) -> None:
    """Send scrapes in which drafts are counted as they happen: τ = 1 + accepted / cycles."""
    batch = []
    for index in range(start + 1, start + count + 1):
        time_ms, wobble = T0 + index * SCRAPE_MS, 1 + 0.02 * ((index * 7) % 5 - 2)
        for metric, value in (
            ("spec.cycles", cycles), ("spec.drafts_accepted", accepted * wobble),
            ("spec.drafts_proposed", 3 * cycles), ("tokens.decoded", cycles + accepted * wobble),
        ):  # fmt: skip
            batch.append(growth(metric, value, time_ms, rank_labels()))
    feed.send(*batch)
    feed.scrapes(count, T0 + start * SCRAPE_MS, running=2)


def at(scrapes: int) -> int:
    return T0 + scrapes * SCRAPE_MS


def test_a_threshold_on_the_interval_needs_the_whole_interval(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    counted(feed, 0, 60, accepted=4)
    low = {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.15, "on": "interval"}
    [found] = readings(sqlite_engine, at(60), rule_of(low))
    assert found.status is Status.BREACH
    assert found.value == pytest.approx(1.1, abs=0.01)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 1.1 < found.upper < 1.15
    assert found.n == 59 * 40  # what is read at this very moment belongs to the next window
    assert "1.1 tokens/cycle (95 %: 1.1" in found.reason or "95 %" in found.reason
    assert found.window_to_ms - found.window_from_ms == 5 * MINUTE
    near = {**low, "below": float(found.value) + 0.0001}
    [found] = readings(sqlite_engine, at(60), rule_of(near))
    assert found.status is Status.OK
    [found] = readings(sqlite_engine, at(60), rule_of({**near, "on": "value"}))
    assert found.status is Status.BREACH


def test_a_value_without_an_interval_decides_unless_the_rule_calls_that_too_few(
    sqlite_engine: Engine, feed: Feed
) -> None:
    feed.launch(engine_version="0.5.8")
    feed.scrapes(60, tau=1.05, running=2)  # a gauge: no interval
    low = {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.15, "on": "interval"}
    [found] = readings(sqlite_engine, at(60), rule_of(low))
    assert found.status is Status.BREACH
    [found] = readings(sqlite_engine, at(60), rule_of({**low, "margin_without_interval": 0.2}))
    assert found.status is Status.OK
    [found] = readings(sqlite_engine, at(60), rule_of({**low, "margin_without_interval": 0.05}))
    assert found.status is Status.BREACH
    assert "with a margin of 5 %" in found.reason
    [found] = readings(sqlite_engine, at(60), rule_of({**low, "without_interval": "too_few"}))
    assert (found.status, found.cause) == (Status.NO_DATA, Cause.FEW)


def test_too_few_cycles_are_no_verdict_unless_the_rule_says_how_many_are_enough(
    sqlite_engine: Engine, feed: Feed
) -> None:
    feed.launch()
    counted(feed, 0, 12, accepted=0.4, cycles=4)
    low = {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.15}
    [found] = readings(sqlite_engine, at(12), rule_of(low))
    assert (found.status, found.cause) == (Status.NO_DATA, Cause.FEW)
    assert "too little" in found.reason
    [found] = readings(sqlite_engine, at(12), rule_of(low, min_n=30))
    assert found.status is Status.BREACH
    [found] = readings(sqlite_engine, at(12), rule_of(low, min_n=60))
    assert found.cause is Cause.FEW


def test_a_drop_against_the_time_before(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    counted(feed, 0, HALF_HOUR, accepted=60)
    counted(feed, HALF_HOUR, 60, accepted=36)
    drop = {
        "kind": "relative", "signal": "acceptance.accept_length", "drop": 0.1, "baseline_window": "20m",
    }  # fmt: skip
    [found] = readings(sqlite_engine, at(HALF_HOUR + 60), rule_of(drop))
    assert found.status is Status.BREACH
    assert found.evidence["change"] == pytest.approx(-0.24, abs=0.01)
    assert "against" in found.reason
    [found] = readings(sqlite_engine, at(HALF_HOUR), rule_of(drop))
    assert found.status is Status.OK
    [found] = readings(sqlite_engine, at(HALF_HOUR + 60), rule_of({**drop, "drop": 0.3}))
    assert found.status is Status.OK
    [found] = readings(sqlite_engine, at(50), rule_of(drop))
    assert (found.status, found.cause) == (Status.NO_DATA, Cause.NO_DATA)


def test_a_drop_against_the_launch_before(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch("a1")
    counted(feed, 0, 120, accepted=60)
    feed.launch("b2", time_ms=at(120))
    counted(feed, 120, 60, accepted=36)
    drop = {
        "kind": "relative", "signal": "acceptance.accept_length", "drop": 0.1, "baseline": "previous_launch",
    }  # fmt: skip
    [found] = readings(sqlite_engine, at(180), rule_of(drop))
    assert found.status is Status.BREACH
    assert found.evidence["before"] == pytest.approx(2.5, abs=0.02)
    [found] = readings(sqlite_engine, at(180), rule_of({**drop, "baseline": "launch:1"}))
    assert found.status is Status.BREACH
    [found] = readings(sqlite_engine, at(119), rule_of(drop))
    assert found.status is Status.NO_DATA


def test_a_run_of_one_server_is_a_baseline_for_others(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch("a1")
    counted(feed, 0, 120, accepted=60)
    other = Feed(feed.writer, "gpu2:30000")
    other.launch("b1", time_ms=at(120))
    counted(other, 120, 60, accepted=36)
    drop = {
        "kind": "relative",
        "signal": "acceptance.accept_length",
        "drop": 0.1,
        "match": {"server": "gpu2*"},
    }
    [found] = readings(sqlite_engine, at(180), rule_of({**drop, "baseline": "launch:1"}))
    assert (found.status, found.labels) == (Status.BREACH, {"server": "gpu2:30000"})
    assert found.evidence["before"] == pytest.approx(2.5, abs=0.02)
    [found] = readings(sqlite_engine, at(180), rule_of({**drop, "baseline": "launch:77"}))
    assert found.status is Status.NO_DATA


def test_a_drop_against_the_same_hour_last_week(sqlite_engine: Engine) -> None:
    """Also when the raw samples of that hour are removed and only the sums by minute are left."""
    week, hour = 7 * 24 * 720, 720
    now_ms = at(week + hour // 2 + 60)
    feed = Feed(IngestWriter(sqlite_engine, lambda: now_ms))
    feed.launch()
    counted(feed, 0, hour, accepted=60)
    counted(feed, week - hour, hour, accepted=20)  # the hour before is no yardstick
    counted(feed, week, hour // 2 + 60, accepted=36)
    drop = rule_of({
        "kind": "relative", "signal": "acceptance.accept_length", "drop": 0.1, "window": "10m",
        "baseline": "same_hour_last_week",
    })  # fmt: skip
    [found] = readings(sqlite_engine, now_ms, drop)
    assert (found.status, found.evidence["before"]) == (Status.BREACH, pytest.approx(2.5, abs=0.02))
    assert "in the same hour last week" in found.reason
    removed = enforce(sqlite_engine, Retention(raw_days=6), now_ms)
    assert removed.rows["sample"] > 0
    [later] = readings(sqlite_engine, now_ms, drop)
    assert (later.status, later.evidence["before"]) == (Status.BREACH, pytest.approx(2.5, abs=0.02))


def test_a_change_point_stands_out_of_the_windows_before(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    counted(feed, 0, HALF_HOUR, accepted=60)
    counted(feed, HALF_HOUR, 12, accepted=45)
    step = {
        "kind": "change_point", "signal": "acceptance.accept_length", "window": "1m", "history": "20m",
        "direction": "down",
    }  # fmt: skip
    [found] = readings(sqlite_engine, at(HALF_HOUR + 12), rule_of(step))
    assert found.status is Status.BREACH
    assert found.evidence["median"] == pytest.approx(2.5, abs=0.02)
    assert found.evidence["windows"] == 20
    [found] = readings(sqlite_engine, at(HALF_HOUR), rule_of(step))
    assert found.status is Status.OK
    [found] = readings(sqlite_engine, at(HALF_HOUR + 12), rule_of({**step, "direction": "up"}))
    assert found.status is Status.OK


def test_what_was_there_and_is_not_is_absent_and_idle_is_not_absent(
    sqlite_engine: Engine, feed: Feed
) -> None:
    feed.launch()
    counted(feed, 0, 60, accepted=60)
    gone = {"kind": "absence", "signal": "metric:spec.cycles", "window": "5m", "lookback": "1h"}
    [found] = readings(sqlite_engine, at(60) + 6 * MINUTE, rule_of(gone))
    assert found.status is Status.BREACH
    assert found.value is None
    [found] = readings(sqlite_engine, at(60), rule_of({**gone, "window": "2m"}))
    assert found.status is Status.OK
    assert not readings(sqlite_engine, at(60) + 3 * 60 * MINUTE, rule_of(gone))
    still = [growth("tokens.decoded", 0, at(index), rank_labels()) for index in range(61, 133)]
    feed.send(*still)
    feed.scrapes(72, at(60), running=0)
    idle = {"kind": "absence", "signal": "acceptance.accept_length", "window": "5m", "lookback": "1h"}
    [found] = readings(sqlite_engine, at(132), rule_of(idle))
    assert found.status is Status.OK


def test_events_are_counted_and_told_in_their_own_words(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(10, running=1)
    changed = {"kind": "event", "events": ["config_*"], "changed_only": True}
    [found] = readings(sqlite_engine, at(10), rule_of(changed))
    assert found.status is Status.OK
    feed.send(
        Event(
            kind="config_change", time_ms=at(9), message="configuration changed: num_steps 3 → 5",
            detail={"changes": {"num_steps": [3, 5]}},
        ),
        Event(kind="config_change", time_ms=at(8), message="configuration became readable"),
    )  # fmt: skip
    [found] = readings(sqlite_engine, at(10), rule_of(changed))
    assert (found.status, found.value) == (Status.BREACH, 1)
    assert found.reason == "configuration changed: num_steps 3 → 5"
    assert found.evidence["changes"] == {"num_steps": ["3", "5"]}
    [found] = readings(sqlite_engine, at(10), rule_of({**changed, "changed_only": False, "at_least": 3}))
    assert (found.status, found.value) == (Status.OK, 2)
    [found] = readings(sqlite_engine, at(10), rule_of({**changed, "changed_only": False}))
    assert found.reason == "configuration changed: num_steps 3 → 5 (and 1 more in 10m)"
    [found] = readings(sqlite_engine, at(9) + 11 * MINUTE, rule_of(changed))
    assert found.status is Status.OK
    assert found.reason == "nothing of that kind in the last 10m"


def test_each_time_that_events_were_seen_is_told_in_its_own_words(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(300, running=1)
    for scrape, steps in ((20, [3, 5]), (220, [5, 2])):
        detail = {"changes": {"num_steps": steps, "env.NCCL_ALGO": [None, "Ring"]}}
        feed.send(Event(kind="restart", time_ms=at(scrape), message="restarted", detail=detail))
    changed = rule_of({"kind": "event", "events": ["restart"], "window": "5m"})
    with Session(sqlite_engine) as session:
        found = backtest(session, state_of(sqlite_engine), changed.rule, T0, at(300), 15_000)
    assert [fire.peak.reason for fire in found.fires] == [
        "restarted: env.NCCL_ALGO not set → Ring, num_steps 3 → 5",
        "restarted: env.NCCL_ALGO not set → Ring, num_steps 5 → 2",
    ]


def test_all_and_any_join_on_the_labels_that_both_have(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    counted(feed, 0, 60, accepted=4)
    low = {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.15}
    busy = {"kind": "threshold", "signal": "metric:requests.running", "above": 1}
    idle = {"kind": "threshold", "signal": "metric:requests.running", "below": 1}
    [found] = readings(sqlite_engine, at(60), rule_of({"kind": "all", "conditions": [low, busy]}))
    assert found.status is Status.BREACH
    assert found.labels == {"server": SERVER}
    assert "tokens/cycle" in found.reason
    assert "requests" in found.reason
    [found] = readings(sqlite_engine, at(60), rule_of({"kind": "all", "conditions": [low, idle]}))
    assert found.status is Status.OK
    [found] = readings(sqlite_engine, at(60), rule_of({"kind": "any", "conditions": [low, idle]}))
    assert found.status is Status.BREACH


def test_labels_choose_series(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(10, running=3)
    above = {"kind": "threshold", "signal": "metric:requests.running", "above": 1}
    for match, count in (
        ({"server": "gpu1:30000"}, 1), ({"server": "gpu2*"}, 0), ({"server": ["x", "gpu?:*"]}, 1),
        ({"tier": "*"}, 0),
    ):  # fmt: skip
        assert len(readings(sqlite_engine, at(10), rule_of({**above, "match": match}))) == count


def test_a_rule_that_cannot_be_read_is_an_error_and_spares_the_others(
    sqlite_engine: Engine, feed: Feed
) -> None:
    feed.launch()
    feed.scrapes(10, running=3)
    broken = rule_of({"kind": "threshold", "signal": "no.such", "above": 1}, name="broken")
    fine = rule_of({"kind": "threshold", "signal": "metric:requests.running", "above": 1}, name="fine")
    found = {reading.rule: reading for reading in readings(sqlite_engine, at(10), broken, fine)}
    assert found["broken"].status is Status.ERROR
    assert "no.such" in found["broken"].reason
    assert found["broken"].labels == {"server": SERVER}
    assert found["fine"].status is Status.BREACH


def test_alerts_that_are_not_normal_get_their_reading_and_what_vanished_gets_none(
    sqlite_engine: Engine, feed: Feed
) -> None:
    feed.launch()
    feed.scrapes(10, running=3)
    fine = rule_of({"kind": "threshold", "signal": "metric:requests.running", "above": 9}, name="fine")
    broken = rule_of({"kind": "threshold", "signal": "no.such", "above": 1}, name="broken")
    with Session(sqlite_engine) as session:
        found = evaluate(session, state_of(sqlite_engine), [fine, broken], at(10))
        everything = list(found)
    assert [reading.rule for reading in found.notable] == ["broken"]
    [key] = [reading.key for reading in everything if reading.rule == "fine"]
    gone = ("fine", (("server", "another"),))
    rank = ("broken", (("rank", "1"), ("server", SERVER)))
    told = {reading.key: reading.status for reading in found.readings([key, gone, rank])}
    assert told[key] is Status.OK
    assert gone not in told
    assert told[rank] is Status.ERROR  # it could not be read, so it has not vanished
    assert found.problems
