"""The trend through the API, on both databases: active, idle and gap are three different things."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed, request

MINUTE_MS = 60_000


def trend(web: Web, minutes: int = 10, **parameters: Any) -> dict[str, Any]:
    asked = {"from_": T0, "to": T0 + minutes * MINUTE_MS, "step": "1m", **parameters}
    found = web.api("/acceptance/trend", server=SERVER, **asked)
    assert isinstance(found, dict)
    return found


def column(found: dict[str, Any], name: str) -> list[Any]:
    return [point[name] for point in found["points"]]


def test_active_idle_and_gap(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8")
    feed.scrapes(11, tau=2.0, rate=0.5, running=2, decoded=10)
    feed.scrapes(12, start_ms=T0 + 11 * SCRAPE_MS, tau=2.0, rate=0.5, running=0, decoded=0)
    feed.scrapes(11, start_ms=T0 + 4 * MINUTE_MS, tau=3.0, rate=0.75, running=2, decoded=10)
    found = trend(web, 5)
    assert column(found, "state") == ["active", "idle", "gap", "gap", "active"]
    assert column(found, "accept_length") == [2.0, None, None, None, 3.0]
    assert column(found, "engine_reported_rate") == [0.5, None, None, None, 0.75]
    assert column(found, "engine_rate_floor") == [0.25, None, None, None, 0.25]
    assert column(found, "requests_running") == [2, 0, None, None, 2]
    assert column(found, "generated_tokens_per_second") == [2.0, 0.0, None, None, 2.0]
    assert column(found, "num_draft_tokens") == [4, 4, None, None, 4]
    assert (found["rate_formula"], found["engine_version"]) == ("τ/D", "0.5.8")


def test_each_bucket_has_its_best_evidence(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(35, tau=2.5, rate=0.5, running=1)
    feed.scrapes(11, start_ms=T0 + MINUTE_MS - SCRAPE_MS, calls=10, tokens=31, finished=1)
    feed.send(request(1, T0 + 2 * MINUTE_MS + 1_000, (5, 0, 0, 5)))
    found = trend(web, 3)
    assert column(found, "evidence") == ["gauges", "counters", "request_histograms"]
    assert column(found, "accept_length") == [2.5, 3.0, 2.5]
    assert column(found, "draft_acceptance") == [pytest.approx(value) for value in (0.5, 2 / 3, 0.5)]


def test_impossible_counts_of_a_bucket_are_passed_over(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(11, tau=2.5, running=1, calls=100, tokens=10, finished=1)
    found = trend(web, 1)
    assert column(found, "evidence") == ["gauges"]
    assert column(found, "accept_length") == [2.5]


def test_launches_that_began_inside_are_marked(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0 - MINUTE_MS)
    feed.scrapes(11, tau=2.0, running=1)
    feed.launch("b2", T0 + 90_000, reason="restarted", speculative={"num_steps": 2, "num_draft_tokens": 3})
    feed.scrapes(11, start_ms=T0 + 2 * MINUTE_MS, tau=1.5, running=1)
    found = trend(web, 3)
    (marker,) = found["launches"]
    assert (marker["reason"], marker["label"]) == ("restarted", "K=2 D=3 · 0.5.15")
    assert column(found, "num_draft_tokens") == [4, None, 3]
    newest = trend(web, 3, launch="newest")
    assert column(newest, "state") == ["gap", "gap", "active"]


def test_an_undetermined_rate_is_called_so(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.23")
    feed.scrapes(11, tau=2.0, rate=0.5, running=1)
    found = trend(web, 1)
    assert found["rate_formula"] == "undetermined"
    assert column(found, "engine_rate_floor") == [None]


def test_a_closed_range_is_cached_and_an_open_one_is_not(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(11, tau=2.0, running=1)
    parameters: dict[str, Any] = {"server": SERVER, "from": T0, "to": T0 + MINUTE_MS}
    first = web.get("/api/v1/acceptance/trend", params=parameters)
    assert first.headers["cache-control"] == "private, max-age=60"
    again = web.get(
        "/api/v1/acceptance/trend", params=parameters, headers={"if-none-match": f"W/{first.headers['etag']}"}
    )
    assert (again.status_code, again.content) == (304, b"")
    open_range = web.get("/api/v1/acceptance/trend", params={"server": SERVER})
    assert open_range.headers["cache-control"] == "no-store"
    assert "etag" not in open_range.headers


def test_ndjson_has_a_line_per_bucket(web: Web, feed: Feed) -> None:
    feed.launch()
    answer = web.get(
        "/api/v1/acceptance/trend",
        params={"server": SERVER, "from": T0, "to": T0 + 5 * MINUTE_MS, "step": "1m", "format": "ndjson"},
    )
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert len(answer.text.splitlines()) == 5
