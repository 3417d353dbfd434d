"""Signals say what the pages say: the newest point is the summary's own number, a row of points is as many
summaries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine
from tests.server.acceptance.simulated import Scheduler, scrapes
from tests.server.alerts.rules.support import MINUTE, ask, attempt
from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, SERVER, T0, Feed, request
from tests.server.timing.simulated import engine as timed_engine
from tests.server.timing.simulated import play

from specscope_server.alerts.rules.signals import signals
from specscope_server.app import create_app
from specscope_server.kit.signal import Why
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

BUSY = [4] * 60 + [0] * 60 + [8] * 60
END = T0 + len(BUSY) * SCRAPE_MS


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


@pytest.fixture
def played(feed: Feed) -> Feed:
    feed.launch()
    feed.send(*scrapes([Scheduler(1)], T0, BUSY))
    return feed


def number(web: Web, path: str, field: str, from_ms: int, to_ms: int) -> dict[str, Any]:
    found = web.api(f"/{path}/summary", server=SERVER, from_=from_ms, to=to_ms)[field]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("acceptance.accept_length", "accept_length"),
        ("acceptance.draft_acceptance", "draft_acceptance"),
        ("acceptance.engine_reported_rate", "engine_reported_rate"),
        ("acceptance.tokens_per_second", "generated_tokens_per_second"),
        ("acceptance.cycles_per_second", "verify_calls_per_second"),
    ],
)
def test_the_newest_point_is_the_number_of_the_summary(
    web: Web, sqlite_engine: Engine, played: Feed, name: str, field: str
) -> None:
    found = number(web, "acceptance", field, END - 5 * MINUTE, END)
    found = found.get("number", found)
    [series] = ask(sqlite_engine, name, END)
    assert series.labels == {"server": SERVER}
    assert series.value[-1] == found["value"]
    assert series.n[-1] == found["n"]
    lower, upper = series.bounds
    if found["low"] is not None:
        assert (lower[-1], upper[-1]) == (found["low"], found["high"])


def test_a_row_of_points_is_as_many_single_ones(sqlite_engine: Engine, played: Feed) -> None:
    step_ms = MINUTE
    [row] = ask(sqlite_engine, "acceptance.accept_length", END, points=12, step_ms=step_ms)
    assert len(row.value) == 12
    for back in range(10):
        single = ask(sqlite_engine, "acceptance.accept_length", END - back * step_ms)
        assert single[0].value[-1] == pytest.approx(row.value[-1 - back], nan_ok=True)
        assert single[0].why[-1] == row.why[-1 - back]
        assert single[0].n[-1] == pytest.approx(row.n[-1 - back], nan_ok=True)
        np.testing.assert_allclose(single[0].bounds[0][-1], row.bounds[0][-1 - back])


def test_an_idle_engine_has_no_value_and_says_why(sqlite_engine: Engine, played: Feed) -> None:
    idle = T0 + 118 * SCRAPE_MS
    [series] = ask(sqlite_engine, "acceptance.accept_length", idle, window_ms=2 * MINUTE)
    assert np.isnan(series.value[-1])
    assert series.why[-1] == Why.IDLE


def test_positions_have_a_series_each(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(180, tau=2.0, running=1)
    feed.send(*(request(number, END - 1_000 * number, (40, 20, 20, 20)) for number in range(1, 30)))
    found = ask(sqlite_engine, "acceptance.conditional", END)
    assert [series.labels["position"] for series in found] == ["1", "2", "3"]
    assert [series.value[-1] for series in found] == pytest.approx([0.6, 40 / 60, 0.5])
    assert found[0].why[-1] == Why.OK


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("timing.cycle_time", "cycle_time"),
        ("timing.verify_time", "verify_time"),
        ("timing.verify_share", "verify_share"),
        ("timing.tokens_per_second", "tokens_per_second"),
    ],
)
def test_times_are_those_of_the_page(
    web: Web, sqlite_engine: Engine, feed: Feed, name: str, field: str
) -> None:
    feed.launch()
    play(feed, timed_engine(), scrapes=60)
    end = T0 + 60 * SCRAPE_MS
    found = number(web, "timing", field, end - 4 * MINUTE, end)
    [series] = ask(sqlite_engine, name, end, window_ms=4 * MINUTE)
    assert series.value[-1] == pytest.approx(found["value"])
    assert series.why[-1] == Why.OK
    rows = ask(sqlite_engine, name, end, window_ms=4 * MINUTE, points=3, step_ms=30_000)
    assert rows[0].value[-1] == pytest.approx(found["value"], rel=0.02)


def test_a_source_that_fails_is_down_and_one_that_falls_silent_grows_old(
    sqlite_engine: Engine, feed: Feed
) -> None:
    for index in range(40):
        attempt(feed, T0 + index * SCRAPE_MS, is_up=index < 30)
    end = T0 + 40 * SCRAPE_MS
    [up] = ask(sqlite_engine, "sources.up", end, window_ms=MINUTE)
    assert up.labels["source"] == "sglang_metrics"
    assert up.value[-1] == pytest.approx(2 / 12)
    [age] = ask(sqlite_engine, "sources.age", end + 10 * MINUTE, window_ms=10 * MINUTE)
    assert age.value[-1] == pytest.approx(600 + 11 * 5, abs=6)


def test_metrics_that_an_upgrade_lost_are_counted(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch("a1", engine_version="0.5.15")
    feed.scrapes(10, tau=2.0, calls=100, tokens=250, finished=5, running=2)
    later = T0 + 60 * MINUTE
    feed.launch("b2", engine_version="0.5.16", time_ms=later)
    feed.scrapes(10, start_ms=later, tokens=250, finished=5, running=2)
    [early] = ask(sqlite_engine, "series.vanished", later + 20 * MINUTE)
    assert early.value[-1] == 2
    assert early.evidence["metrics"] == ["spec.accept_length", "spec.verify_calls"]


def test_every_metric_is_a_signal_and_names_are_unique(sqlite_engine: Engine, played: Feed) -> None:
    [series] = ask(sqlite_engine, "metric:requests.running:max", END)
    assert series.value[-1] == 8
    assert series.labels["server"] == SERVER
    [grown] = ask(sqlite_engine, "metric:tokens.generated:sum", END, points=3)
    assert grown.value[-1] > 0
    assert {"metric:kv.usage", "metric:latency.queue:p99"} <= signals().keys()
