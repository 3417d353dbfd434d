"""A change that lasts ends no alert: what it is compared with stands still from the first breach on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.server.alerts.rules.support import rule_of
from tests.server.seed import SERVER, T0, Feed, rank_labels
from tests.server.timing.simulated import engine, play
from tests.support.databases import opened

from specscope_collectors.observations import Increment, Level, Observation
from specscope_server.alerts.pipeline.evaluating import Step, evaluate_once
from specscope_server.alerts.rules import baselines
from specscope_server.alerts.rules.backtest import backtest
from specscope_server.alerts.rules.evaluate import evaluate, watched
from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.holding import Holds
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.reading import Reading, Status, label_key
from specscope_server.alerts.rules.reads import Frame
from specscope_server.alerts.rules.schema import Origin, StoredRule
from specscope_server.alerts.rules.service import validate
from specscope_server.alerts.rules.still import SameHour
from specscope_server.kit.web.state import AppState
from specscope_server.models import AlertState, AlertTransition
from specscope_server.store.ingest import IngestWriter

MINUTE, HOUR = 60_000, 3_600_000
EVERY_MS = 10 * MINUTE
BEFORE, DROP, AFTER = 3, 12, 2
"""Hours: as usual, worse, and as usual again."""
END = BEFORE + DROP + AFTER
GOOD, BAD = 60.0, 36.0
SHORT: dict[str, Any] = {"kind": "relative", "signal": "acceptance.accept_length", "window": "15m"}
CONDITIONS: dict[str, dict[str, Any]] = {
    "preceding": {**SHORT, "baseline_window": "2h", "drop": 0.1},
    "change point": {
        "kind": "change_point", "signal": "acceptance.accept_length", "window": "5m", "history": "2h",
        "direction": "down",
    },
    "all of two": {
        "kind": "all",
        "conditions": [
            {**SHORT, "baseline_window": "2h", "drop": 0.1},
            {"kind": "threshold", "signal": "metric:requests.running", "above": 1},
        ],
    },
    "held for 4 h": {**SHORT, "baseline_window": "2h", "drop": 0.1},
}  # fmt: skip


def hours(feed: Feed, start_hour: float, count: float, accepted: float) -> None:
    """Send a scrape a minute in which τ = 1 + accepted / 40."""
    batch: list[Observation] = []
    for minute in range(round(start_hour * 60) + 1, round((start_hour + count) * 60) + 1):
        time_ms, wobble = T0 + minute * MINUTE, 1 + 0.02 * ((minute * 7) % 5 - 2)
        for metric, value in (
            ("spec.cycles", 40.0), ("spec.drafts_accepted", accepted * wobble),
            ("spec.drafts_proposed", 120.0), ("tokens.decoded", 40 + accepted * wobble),
        ):  # fmt: skip
            batch.append(
                Increment(metric=metric, labels=rank_labels(), time_ms=time_ms, span_ms=MINUTE, value=value)
            )
        batch.append(Level(metric="requests.running", labels=rank_labels(), time_ms=time_ms, value=2))
    feed.send(*batch)


def at(hour: float) -> int:
    return T0 + round(hour * HOUR)


def live(store: Engine, rules: Sequence[StoredRule], from_ms: int, to_ms: int) -> None:
    """Evaluate as servers do, a restart between any two turns included: nothing is known but the rows."""
    for now_ms in range(from_ms, to_ms + 1, EVERY_MS):
        baselines._kept.clear()
        evaluate_once(store, lambda _: rules, evaluating(store, now_ms), now_ms, Step(EVERY_MS))


def evaluating(store: Engine, at_ms: int) -> Any:
    state = AppState(store, lambda: at_ms, MINUTE)

    def evaluation(session: Session, rules: Sequence[StoredRule], now_ms: int, holds: Holds) -> Evaluation:
        return evaluate(session, state, rules, now_ms, holds)

    return evaluation


def fires_live(store: Engine, rule: str) -> Iterator[tuple[int, int | None, str]]:
    """Yield (fired, over, why it is over) of each fire of a rule."""
    query = select(AlertTransition).where(AlertTransition.rule == rule).order_by(AlertTransition.id)
    with Session(store) as session:
        changes = [row for row in session.scalars(query) if row.alert_id is not None]
    for begun in changes:
        if begun.to_state == "firing" and begun.from_state != "recovering":
            same = [row for row in changes if row.alert_id == begun.alert_id and row.to_state == "resolved"]
            yield begun.at_ms, *((same[0].at_ms, same[0].reason) if same else (None, ""))


@dataclass(frozen=True)
class Story:
    """Hours in which a drop came and went, and what live evaluation made of it."""

    engine: Engine
    rules: dict[str, StoredRule]


def stored_of(name: str) -> StoredRule:
    if name in pack():
        return StoredRule(rule=pack()[name], version=1, origin=Origin.PACK, enabled=True)
    fields: dict[str, Any] = {"for": "10m", "keep_firing_for": "10m", "name": name.replace(" ", "-")}
    if name == "held for 4 h":
        fields["baseline_hold"] = "4h"
    return rule_of(CONDITIONS[name], **fields)


NAMES = [*CONDITIONS, "acceptance-drop"]


@pytest.fixture(scope="module")
def story(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    path = tmp_path_factory.mktemp("lasting") / "specscope.sqlite3"
    shutil.copyfile(sqlite_template, path)
    with opened(f"sqlite:///{path}") as store:
        feed = Feed(IngestWriter(store, lambda: at(END)))
        feed.launch()
        hours(feed, 0, BEFORE, GOOD)
        hours(feed, BEFORE, DROP, BAD)
        hours(feed, BEFORE + DROP, AFTER, GOOD)
        rules = {name: stored_of(name) for name in NAMES}
        live(store, list(rules.values()), at(BEFORE - 0.5), at(END))
        yield Story(store, rules)


@pytest.mark.parametrize("name", NAMES)
def test_a_drop_of_twelve_hours_is_one_fire_live_and_in_the_back_test(story: Story, name: str) -> None:
    rule = story.rules[name].rule
    [(fired_ms, over_ms, words)] = fires_live(story.engine, rule.name)
    assert at(BEFORE) < fired_ms < at(BEFORE + 0.75)
    assert over_ms is not None
    if name == "held for 4 h":
        assert at(BEFORE + 4) < over_ms < at(BEFORE + 5), "it cannot fire for ever"
        assert "the baseline stood still for 4h (baseline_hold)" in words
        assert "need not mean that it is over" in words
    else:
        assert at(BEFORE + DROP) < over_ms < at(BEFORE + DROP + 1)
        assert "need not mean" not in words
    with Session(story.engine) as session:
        state = AppState(story.engine, lambda: at(END), MINUTE)
        found = backtest(session, state, rule, at(BEFORE - 0.5) - EVERY_MS, at(END), EVERY_MS)
    assert [(fire.fired_ms, fire.resolved_ms) for fire in found.fires] == [(fired_ms, over_ms)]
    assert found.counts["breach"] > 6 * 3
    assert "this began" in found.fires[0].peak.reason


def test_the_reason_says_what_it_is_compared_with(story: Story) -> None:
    with story.engine.connect() as connection:
        query = select(AlertTransition.card).where(
            AlertTransition.rule == "preceding", AlertTransition.to_state == "resolved"
        )
        card = orjson.loads(connection.scalars(query).one() or "")
    assert card["reason"].startswith("2.5"), "the end says what is now"
    assert "in the 2 h up to 2026-03-01 14:" in card["reason"], "and what lay before it began"
    assert "before this began" in card["reason"]


def test_the_check_of_a_rule_says_what_live_evaluation_says(story: Story) -> None:
    """Also of a rule whose alert fires: with its baseline."""
    middle = at(BEFORE + DROP - 1)
    rule = story.rules["preceding"].rule
    key = (("server", SERVER),)
    begun = at(BEFORE) + 5 * MINUTE
    with Session(story.engine) as session:
        state = AppState(story.engine, lambda: middle, MINUTE)
        [moving] = evaluate(session, state, [story.rules["preceding"]], middle)
        [still] = evaluate(session, state, [story.rules["preceding"]], middle, {rule.name: {key: begun}})
        assert (moving.status, still.status) == (Status.OK, Status.BREACH)
        row = session.scalars(select(AlertState).where(AlertState.rule == rule.name)).one()
        row.state, row.breach_since_ms = "firing", begun
        session.flush()
        assert [each.status for each in validate(session, state, rule.document()).now] == [Status.BREACH]
        session.rollback()
        assert [each.status for each in validate(session, state, rule.document()).now] == [Status.OK]


def test_the_same_hour_is_that_of_the_last_week_before_it_began(sqlite_engine: Engine) -> None:
    week = 7 * 24
    feed = Feed(IngestWriter(sqlite_engine, lambda: at(2 * week + 2)))
    feed.launch()
    for start, accepted in ((0, GOOD), (week, BAD), (2 * week, BAD)):
        hours(feed, start, 1, accepted)
    rule = rule_of({**SHORT, "drop": 0.1, "baseline": "same_hour_last_week"})
    [moving] = readings_of(sqlite_engine, rule, at(2 * week + 0.6))
    assert moving.status is Status.OK, "last week it was as bad"
    [still] = readings_of(sqlite_engine, rule, at(2 * week + 0.6), at(week - 20))
    assert still.status is Status.BREACH
    assert "in the same hour of the last week before this began" in still.reason
    need, times = SameHour("acceptance.accept_length", at(week + 0.5)), [at(2 * week), at(2 * week + 0.2)]
    with Session(sqlite_engine) as session:
        state = AppState(sqlite_engine, lambda: times[-1], MINUTE)
        frame = Frame(watched(session), np.array(times), times[1] - times[0], times[-1], state)
        together = need.read(session, frame).value[0].tolist()
        alone = [float(need.read(session, frame.at(time_ms)).value[0, 0]) for time_ms in times]
    assert together == alone == pytest.approx([1.9, 2.5], abs=0.03)


def test_a_restart_while_it_fires_makes_no_other_launch_the_one_before(sqlite_engine: Engine) -> None:
    feed = Feed(IngestWriter(sqlite_engine, lambda: at(4)))
    for place, accepted in enumerate((GOOD, BAD, BAD)):
        feed.launch(f"k{place}", time_ms=at(place))
        hours(feed, place, 1, accepted)
    rule = rule_of({**SHORT, "drop": 0.1, "baseline": "previous_launch"})
    [moving] = readings_of(sqlite_engine, rule, at(2.9))
    assert moving.status is Status.OK
    [still] = readings_of(sqlite_engine, rule, at(2.9), at(1.3))
    assert still.status is Status.BREACH
    assert "in the launch before when this began, 2026-03-01 13:18 UTC" in still.reason


def test_what_is_absent_for_longer_than_it_is_looked_back_is_absent_still(sqlite_engine: Engine) -> None:
    feed = Feed(IngestWriter(sqlite_engine, lambda: at(4)))
    feed.launch()
    hours(feed, 0, 1, GOOD)
    gone = rule_of({"kind": "absence", "signal": "metric:spec.cycles", "window": "5m", "lookback": "1h"})
    assert not readings_of(sqlite_engine, gone, at(3))
    [before] = readings_of(sqlite_engine, gone, at(1.2))
    [still] = readings_of(sqlite_engine, gone, at(3), at(1.1), before.labels)
    assert (before.status, still.status) == (Status.BREACH, Status.BREACH)
    assert "in the 1h before 2026-03-01 13:01 UTC" in still.reason


def test_a_signal_with_a_baseline_of_its_own_stands_still_too(sqlite_engine: Engine) -> None:
    day, six_hours = 24 * HOUR, 6 * HOUR
    boundary = T0 - T0 % six_hours + six_hours
    feed = Feed(IngestWriter(sqlite_engine, lambda: boundary + 2 * day))
    feed.launch(time_ms=boundary - 600_000)
    play(feed, engine(), scrapes=115, start_ms=boundary - 600_000)
    slow = {"draft": 1.4, "verify_prepare": 0.2, "verify": 40.0, "sampling": 0.5, "draft_extend": 0.6}
    for start_ms in (boundary, boundary + day):
        play(feed, engine(parts={**slow, "other": 0.3}), scrapes=181, start_ms=start_ms)
    rule = stored_of("verify-slower")
    now_ms, begun_ms = boundary + day + 181 * 5_000, boundary + 181 * 5_000
    [moving] = readings_of(sqlite_engine, rule, now_ms)
    assert moving.status is Status.OK
    [still] = readings_of(sqlite_engine, rule, now_ms, begun_ms)
    assert still.status is Status.BREACH
    assert "compared with the day before this began" in still.reason


def readings_of(
    store: Engine, rule: StoredRule, now_ms: int, held_ms: int | None = None,
    labels: Mapping[str, str] = MappingProxyType({"server": SERVER}),
) -> list[Reading]:  # fmt: skip
    holds = {} if held_ms is None else {rule.rule.name: {label_key(labels): held_ms}}
    with Session(store) as session:
        state = AppState(store, lambda: now_ms, MINUTE)
        return list(evaluate(session, state, [rule], now_ms, holds))
