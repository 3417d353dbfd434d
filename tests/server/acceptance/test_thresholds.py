"""Where a number turns into another state: each limit is met from both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, SERVER, T0, Feed, level, request

from specscope_collectors.observations import Level
from specscope_server.acceptance.activity import LATE_MS, late_idle
from specscope_server.acceptance.gather import DERIVING, Growth, LaunchData, RankData
from specscope_server.acceptance.measure import Measured
from specscope_server.acceptance.statistics import bootstrapped_ratio, clustered_ratio, pooled
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch

NAN = float("nan")
PAST = {"from_": str(T0), "to": str(T0 + 600_000)}
WINDOW = Window(T0, T0 + 3 * SCRAPE_MS, SCRAPE_MS)


def summary(web: Web, **parameters: Any) -> dict[str, Any]:
    found = web.api("/acceptance/summary", server=SERVER, **{**PAST, **parameters})
    assert isinstance(found, dict)
    return found


def check(found: dict[str, Any], name: str) -> bool | None:
    return next(entry["passed"] for entry in found["checks"] if entry["name"] == name)


def grown(*values: float) -> Growth:
    array = np.array(values)
    seen = (~np.isnan(array)).astype(np.int64)
    return Growth(array, seen * SCRAPE_MS, seen)


def launch_data(
    draft_tokens: int | None, calls: tuple[float, ...], running: tuple[float, ...] = (1, 1, 1)
) -> LaunchData:
    """Return a launch with D, whose every cycle keeps one draft."""
    values = [tuple(2 * count + 1 for count in calls), (1.0,) * 3, calls]
    counters = {metric: grown(*value) for metric, value in zip(DERIVING, values, strict=True)}
    ranks = {(): RankData(mean={"requests.running": np.array(running, dtype=np.float64)})}
    launch = Launch(num_draft_tokens=draft_tokens, adaptive=False)
    return LaunchData(launch, 3, counters, ranks, {}, SCRAPE_MS)


def test_the_clustered_interval_of_two_requests() -> None:
    # 5 and 7 accepted drafts in 10 cycles each: R = 0.6, residuals −1 and 1
    found = clustered_ratio(2, (20.0, 12.0, 200.0, 120.0, 74.0))
    assert found.value == 0.6
    assert found.high == pytest.approx(0.6 + 1.96 * np.sqrt(2 / 1 * 2) / 20)
    assert found.low == pytest.approx(0.6 - 1.96 * np.sqrt(2 / 1 * 2) / 20)


def test_the_widened_interval_of_a_share_near_zero_does_not_fall_below_it() -> None:
    found = bootstrapped_ratio(np.array([0.0, 0, 0, 0, 0, 1]), np.full(6, 10.0))
    assert found.low == 0
    assert found.value == pytest.approx(1 / 60)
    assert (found.high or 0) > 1 / 60


def test_means_are_pooled_by_how_many_they_are_of() -> None:
    assert pooled([(2.0, 1), (None, 0), (4.0, 3)]) == (3.5, 4)
    assert pooled([(None, 0)]) == (None, 0)
    assert pooled([]) == (None, 0)


@pytest.mark.parametrize(
    ("scrapes", "is_idle"), [(LATE_MS // SCRAPE_MS, True), (LATE_MS // SCRAPE_MS + 1, False)]
)
def test_a_standstill_is_explained_for_as_long_as_a_gauge_may_be_old(scrapes: int, is_idle: bool) -> None:
    flags = np.ones(scrapes, dtype=bool)
    found = late_idle(flags, flags, np.ones(scrapes, dtype=np.int64), np.full(scrapes, 4.0), SCRAPE_MS)
    assert found.tolist() == [is_idle] * scrapes


def test_a_bucket_that_one_launch_was_active_in_is_not_idle() -> None:
    idle, active = launch_data(4, (0, 0, 9), running=(0, 0, 1)), launch_data(4, (0, 9, 9))
    for data in (idle, active):
        for metric in DERIVING:
            data.counters[metric] = grown(0, 0, 9)
    assert Measured(WINDOW, [idle], None).activity[1].tolist() == [True, True, False]
    assert Measured(WINDOW, [idle, active], None).activity[1].tolist() == [False, False, False]


def test_the_drafts_of_one_launch_are_not_all_drafts_of_a_bucket_that_two_share() -> None:
    known, unknown = launch_data(4, (10, 10, 0)), launch_data(None, (NAN, 10, 0))
    accepted, calls, proposed = Measured(WINDOW, [known, unknown], None).counter_arrays
    np.testing.assert_array_equal(calls, [10, 20, 0])
    np.testing.assert_array_equal(accepted[:2], [10, 20])
    np.testing.assert_array_equal(proposed, [30, NAN, 0])


@pytest.mark.parametrize(("cycles", "evidence"), [(50, "request_histograms"), (49, "counters")])
def test_requests_that_cover_half_of_the_cycles_are_preferred(
    web: Web, feed: Feed, cycles: int, evidence: str
) -> None:
    feed.launch()
    feed.scrapes(1, calls=100, tokens=201, finished=1, running=1)
    feed.send(request(1, T0 + SCRAPE_MS, (0, cycles, 0, 0)))
    assert summary(web)["evidence"] == evidence


@pytest.mark.parametrize(("calls", "state"), [(199, "few"), (200, "ok")])
def test_two_hundred_cycles_are_enough(web: Web, feed: Feed, calls: int, state: str) -> None:
    feed.launch(time_ms=NOW - 20_000)
    feed.scrapes(1, start_ms=NOW - 20_000, running=1, calls=calls, tokens=2 * calls + 1, finished=1)
    found = summary(web, from_="now-1h", to="now")
    assert found["accept_length"]["state"] == state


@pytest.mark.parametrize(("scrapes", "calls", "passed"), [(2, 100, None), (3, 66, None), (3, 67, False)])
def test_gauges_and_counters_are_compared_from_three_windows_and_200_cycles_on(
    web: Web, feed: Feed, scrapes: int, calls: int, passed: bool | None
) -> None:
    feed.launch()
    feed.scrapes(scrapes, tau=3.9, running=1, calls=calls, tokens=2 * calls + 1, finished=1)
    assert check(summary(web), "gauges agree with counters") is passed


@pytest.mark.parametrize(("tokens", "state"), [(121, "stale"), (122, "undetermined")])
def test_one_draft_more_than_was_proposed_is_a_contradiction(
    web: Web, feed: Feed, tokens: int, state: str
) -> None:
    """30 cycles of D = 4 propose 90 drafts; with the bonus tokens and prefill's one that is 121 tokens."""
    feed.launch()
    feed.scrapes(60, calls=30, tokens=tokens, finished=1, running=1)
    assert summary(web, from_="now-1h", to="now")["accept_length"]["state"] == state


def test_of_two_sources_of_a_scheduler_the_one_that_tells_more_is_taken(web: Web, feed: Feed) -> None:
    feed.launch()
    for index in range(1, 11):
        time_ms = T0 + index * SCRAPE_MS
        plain = Level(metric="requests.running", labels={"model_name": "llama"}, time_ms=time_ms, value=9)
        feed.send(
            plain, level("requests.running", 3, time_ms, dp=0), level("spec.accept_length", 2, time_ms, dp=0)
        )
    assert summary(web)["requests_running"]["value"] == 3


@pytest.mark.parametrize(("tokens", "evidence"), [(121, "counters"), (122, "gauges")])
def test_a_bucket_with_more_accepted_than_proposed_falls_back_to_gauges(
    web: Web, feed: Feed, tokens: int, evidence: str
) -> None:
    feed.launch()
    feed.scrapes(60, calls=30, tokens=tokens, finished=1, running=1, tau=2.5, width=4)
    points = web.api("/acceptance/trend", server=SERVER, step="1m", **PAST)["points"]
    assert {point["evidence"] for point in points if point["state"] == "active"} == {evidence}


def test_a_window_holds_the_requests_from_its_start_to_just_before_its_end(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(1, running=1, tau=2.0)
    for number, time_ms in enumerate((T0 - 1, T0, T0 + 599_999, T0 + 600_000)):
        feed.send(request(number, time_ms, (0, 300, 0, 0)))
    assert summary(web)["counts"]["finished_requests"] == 2
