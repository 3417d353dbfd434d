"""Idleness that the gauge of running requests shows late, and work that must not be taken for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed, growth, level, rank_labels

from specscope_server.acceptance.activity import late_idle, standstill

NAN = float("nan")


def scrapes(feed: Feed, first: int, count: int, *, running: float, decoded: float, **more: float) -> None:
    """Send scrapes ``first`` … with the same values; ``more``: prefill, finished, queued, tau."""
    for index in range(first, first + count):
        time_ms = T0 + index * SCRAPE_MS
        feed.send(
            growth("tokens.decoded", decoded, time_ms, rank_labels()),
            growth("tokens.prefill_computed", more.get("prefill", 0), time_ms, rank_labels()),
            growth("requests.finished", more.get("finished", 0), time_ms),
            level("requests.running", running, time_ms),
            level("requests.queued", more.get("queued", 0), time_ms),
            level("spec.accept_length", more.get("tau", 2.0), time_ms),
        )


def states(web: Web, step: str = "10s", seconds: int = 120) -> list[Any]:
    asked = {"from_": T0, "to": T0 + seconds * 1000, "step": step, "server": SERVER}
    return [point["state"] for point in web.api("/acceptance/trend", **asked)["points"]]


@pytest.mark.parametrize("step", ["10s", "5s", "30s"])
def test_idle_begins_when_the_counters_stop_not_when_the_gauge_says_so(
    web: Web, feed: Feed, step: str
) -> None:
    feed.launch(engine_version="0.5.8")
    scrapes(feed, 0, 12, running=4, decoded=100, finished=1)
    scrapes(feed, 12, 6, running=4, decoded=0, tau=3.9)
    scrapes(feed, 18, 6, running=0, decoded=0, tau=3.9)
    found = states(web, step)
    assert found == ["active"] * (len(found) // 2) + ["idle"] * (len(found) // 2)
    past = {"from_": str(T0), "to": str(T0 + 120_000)}
    assert web.api("/acceptance/summary", server=SERVER, **past)["accept_length"]["value"] == 2.0


def test_it_shows_within_two_scrapes_while_it_happens(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8")
    scrapes(feed, 0, 22, running=4, decoded=100, finished=1)
    scrapes(feed, 22, 1, running=4, decoded=0)
    assert states(web, "5s")[-3:] == ["active", "active", "gap"]
    scrapes(feed, 23, 1, running=4, decoded=0)
    assert states(web, "5s")[-3:] == ["active", "idle", "idle"]


@pytest.mark.parametrize("work", [{"prefill": 8192}, {"finished": 1}, {"queued": 3}])
def test_a_long_prefill_or_waiting_requests_are_work(web: Web, feed: Feed, work: dict[str, float]) -> None:
    feed.launch(engine_version="0.5.8")
    scrapes(feed, 0, 12, running=4, decoded=100)
    scrapes(feed, 12, 6, running=4, decoded=0, **work)
    scrapes(feed, 18, 6, running=4, decoded=100)
    assert states(web) == ["active"] * 12


def test_an_engine_that_stands_still_for_longer_than_an_old_gauge_explains_is_not_idle(
    web: Web, feed: Feed
) -> None:
    feed.launch(engine_version="0.5.8")
    scrapes(feed, 0, 6, running=4, decoded=100)
    scrapes(feed, 6, 18, running=4, decoded=0)
    assert states(web) == ["active"] * 12


def test_unknown_counters_show_nothing(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8")
    for index in range(24):
        feed.send(level("requests.running", 4, T0 + index * SCRAPE_MS))
    assert states(web) == ["active"] * 12


def late(decoded: list[float], running: list[float], scrapes: int = 1, step_ms: int = 5_000) -> list[bool]:
    grown = np.array(decoded)
    still = standstill(grown, [], np.full(len(grown), NAN))
    counts = np.where(np.isnan(grown), 0, scrapes)
    return late_idle(still, ~np.isnan(grown), counts, np.array(running), step_ms).tolist()


def test_one_scrape_without_tokens_is_not_enough() -> None:
    assert late([9, 0, 9], [4, 4, 4]) == [False, False, False]
    assert late([9, 0, 0, 9], [4, 4, 4, 4]) == [False, True, True, False]


def test_buckets_between_scrapes_do_not_interrupt_a_standstill() -> None:
    assert late([9, NAN, 0, NAN, 0, NAN], [4, NAN, 4, NAN, 4, NAN]) == [
        False, False, True, False, True, False,
    ]  # fmt: skip


def test_a_coarse_bucket_is_idle_only_if_the_gauge_ends_at_zero() -> None:
    assert late([9, 0], [4, 4], scrapes=60, step_ms=600_000) == [False, False]
    assert late([9, 0], [4, 0], scrapes=60, step_ms=600_000) == [False, True]


def test_what_was_still_before_the_gauge_fell_to_zero_was_idle() -> None:
    assert late([9] + [0] * 20, [4] * 20 + [0]) == [False] + [True] * 20
