"""Judging many conditions at once says what each by hand says; a row of instants what single ones say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.server.alerts.rules.support import MINUTE, rule_of, state_of, targets
from tests.server.alerts.rules.test_pack import GOOD, at, drafts
from tests.server.seed import NOW, Feed

from specscope_collectors.observations import Event
from specscope_server.acceptance.statistics import Ratio
from specscope_server.alerts.rules.conditions import change_point, relative, threshold
from specscope_server.alerts.rules.judge_rules import views
from specscope_server.alerts.rules.judging import BREACH, OK, UNKNOWN, Sample, codes_of
from specscope_server.alerts.rules.matching import Matcher
from specscope_server.alerts.rules.reads import Frame, Grid
from specscope_server.kit.signal import SignalSeries, Why
from specscope_server.store.ingest import IngestWriter
from specscope_server.timing.statistics import relative_change

POINT = st.tuples(
    st.floats(-10, 10), st.sampled_from(list(Why)), st.floats(0, 100), st.floats(0, 5), st.booleans()
)
LIMIT = st.tuples(st.booleans(), st.floats(-10, 10), st.booleans(), st.none() | st.floats(0, 100))


def grid(points: list[tuple[float, Why, float, float, bool]]) -> Grid:
    """Return a series for each point (value, why, n, half width, whether there is an interval)."""
    series = []
    for index, (value, why, n, half, has) in enumerate(points):
        low, high = (np.array([value - half]), np.array([value + half])) if has else (None, None)
        whys = np.array([why], dtype=np.uint8)
        series.append(SignalSeries({"server": str(index)}, np.array([value]), whys, np.array([n]), low, high))
    return Grid(series, 1)


def by_hand(
    point: tuple[float, Why, float, float, bool], limit: tuple[bool, float, bool, float | None]
) -> int:
    """Return the code of one condition on one point."""
    value, why, n, half, has = point
    is_above, bound, on_interval, least = limit
    if why is Why.FEW and least is not None:
        why = Why.OK
    if why in (Why.OK, Why.FEW) and least is not None and n < least:
        why = Why.FEW
    if why is not Why.OK:
        return UNKNOWN + why
    reach = half if on_interval and has else 0.0
    hit = value - reach > bound if is_above else value + reach < bound
    return BREACH if hit else OK


@given(st.lists(POINT, min_size=1, max_size=6), st.lists(LIMIT, min_size=1, max_size=6))
def test_all_limits_on_all_series_are_as_each_by_hand(points: list[Any], limits: list[Any]) -> None:
    conditions = [
        threshold.Condition.model_validate(
            {"signal": "s", "above" if up else "below": bound, "on": "interval" if on else "value"}
        )
        for up, bound, on, _ in limits
    ]
    samples = [Sample(math.nan if least is None else least, math.nan) for *_, least in limits]
    judged = threshold.judge([grid(points)], conditions)
    codes = codes_of(judged, samples, np.ones((len(limits), len(points)), dtype=bool))
    wanted = [[by_hand(point, limit) for point in points] for limit in limits]
    assert codes[:, :, 0].tolist() == wanted


NUMBER = st.sampled_from([math.nan, math.inf, 0.0, -1.0]) | st.floats(1e-3, 1e3)
SIDE = st.tuples(NUMBER, NUMBER, NUMBER)


@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=5))
def test_changes_of_many_are_as_that_of_each(pairs: list[Any]) -> None:
    def side(place: int) -> Grid:
        columns = [np.array([[pair[place][part]] for pair in pairs]) for part in range(3)]
        whys = np.zeros(1, np.uint8)
        return Grid(
            [
                SignalSeries({"server": str(row)}, value, whys, np.ones(1), low, high)
                for row, (value, low, high) in enumerate(zip(*columns, strict=True))
            ],
            1,
        )

    together = relative.changes(side(1), side(0))
    for row, pair in enumerate(pairs):
        before, after = (Ratio(*(x if math.isfinite(x) else None for x in one)) for one in pair)
        alone = relative_change(before, after)
        for found, wanted in zip(together, (alone.value, alone.low, alone.high), strict=True):
            assert float(found[row, 0]) == pytest.approx(math.nan if wanted is None else wanted, nan_ok=True)


@given(st.lists(st.floats(1, 5), min_size=10, max_size=40), st.floats(0, 10))
def test_a_change_point_is_as_its_formula(past: list[float], value: float) -> None:
    count = len(past)
    condition = change_point.Condition.model_validate(
        {"signal": "s", "window": "1m", "history": f"{count}m", "deviations": 4, "share": 0.1}
    )
    now, before = grid([(value, Why.OK, 1.0, 0.0, False)]), Grid(
        [SignalSeries({"server": "0"}, np.array(past), np.zeros(count, np.uint8), np.ones(count))], count
    )  # fmt: skip
    before.times_ms = np.arange(1, count + 1, dtype=np.int64) * MINUTE
    now.times_ms = np.array([(count + 1) * MINUTE], dtype=np.int64)
    found = bool(change_point.judge([now, before], [condition]).breach[0, 0, 0])
    middle = float(np.median(past))
    scale = 1.4826 * float(np.median(np.abs(np.array(past) - middle)))
    far = abs(value - middle)
    limit = max(4 * scale, 0.1 * middle)
    if far != pytest.approx(limit):
        assert found == (far > limit)


@given(st.dictionaries(st.sampled_from("ab"), st.text("xy*?", min_size=1, max_size=3), max_size=2))
def test_labels_match_as_file_names_do(match: dict[str, str]) -> None:
    from fnmatch import fnmatchcase

    keys = [(("a", "x"), ("b", "yx")), (("a", "xy"),), (("b", "y"),), ()]
    wanted = [
        all(name in dict(key) and fnmatchcase(dict(key)[name], pattern) for name, pattern in match.items())
        for key in keys
    ]
    assert Matcher(keys).flags(match).tolist() == wanted


RULES: list[dict[str, Any]] = [
    {"kind": "threshold", "signal": "acceptance.accept_length", "below": 2.2, "on": "interval"},
    {"kind": "threshold", "signal": "acceptance.conditional", "below": 0.6, "match": {"position": "1"}},
    {"kind": "threshold", "signal": "metric:requests.running:max", "above": 1},
    {"kind": "threshold", "signal": "sources.up", "below": 0.9},
    {"kind": "relative", "signal": "acceptance.accept_length", "drop": 0.1, "baseline_window": "20m"},
    {
        "kind": "change_point", "signal": "acceptance.accept_length", "window": "1m", "history": "15m",
        "direction": "down",
    },
    {"kind": "absence", "signal": "metric:spec.cycles", "window": "2m", "lookback": "20m"},
    {"kind": "event", "events": ["restart"], "window": "5m"},
]  # fmt: skip


@pytest.mark.parametrize("condition", RULES, ids=lambda rule: f"{rule['kind']} {rule.get('signal', '')}")
def test_a_row_of_instants_is_judged_as_each_alone(sqlite_engine: Engine, condition: dict[str, Any]) -> None:
    """What a replay says is what live evaluation would have said."""
    feed = Feed(IngestWriter(sqlite_engine, lambda: NOW))
    feed.launch()
    drafts(feed, 0, 360, GOOD)
    drafts(feed, 360, 60, (0.5, 0.4, 0.3))
    drafts(feed, 460, 100, GOOD)
    feed.send(Event(kind="restart", time_ms=at(400), message="restarted"))
    step_ms, times = MINUTE, np.arange(at(300), at(560) + 1, MINUTE, dtype=np.int64)
    stored, state = rule_of(condition), state_of(sqlite_engine)
    with Session(sqlite_engine) as session:
        frame = Frame(targets(session), times, step_ms, NOW, state)
        [row] = views(session, frame, [stored])[0]
        for place, time_ms in enumerate(times.tolist()):
            single = Frame(targets(session), times[place : place + 1], 1_000, time_ms, state)
            [alone] = views(session, single, [stored])[0]
            found = dict(zip(alone.view.keys, alone.view.codes[:, 0].tolist(), strict=True))
            together = dict(zip(row.view.keys, row.view.codes[:, place].tolist(), strict=True))
            known = {key: code for key, code in together.items() if code != UNKNOWN + Why.NO_DATA}
            assert {key: code for key, code in found.items() if code != UNKNOWN + Why.NO_DATA} == known, (
                time_ms
            )
    if condition["kind"] != "threshold" or "up" not in condition["signal"]:
        assert {BREACH, OK} & set(row.view.codes.flatten().tolist())
