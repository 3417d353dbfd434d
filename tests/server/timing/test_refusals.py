"""What cannot be is refused and said: phases longer than their cycle, more work than time, counters reset."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.server.client import Web
from tests.server.seed import SERVER, T0, Feed, growth, rank_labels
from tests.server.timing.simulated import engine, play
from tests.server.timing.test_levels import WINDOW, failed, level_of, row, summary


def test_phases_longer_than_their_cycle_are_refused(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine()
    full = simulated._probe

    def wrong(metric: str, value: float, **labels: str) -> None:
        full(metric, 2 * value if labels.get("phase") == "verify" else value, **labels)

    simulated._probe = wrong  # type: ignore[method-assign]
    play(feed, simulated)
    found = summary(web)
    assert found["evidence"] == "device_timer"
    refused = level_of(found, "probe")
    assert refused["state"] == "refused"
    assert "phases of speculative cycles take" in refused["note"]
    assert "Σ phases ≤ cycle (the probe inside the engine)" in failed(found)
    assert row(found, "verify")["ms_per_cycle"] == pytest.approx(30, rel=0.02)


def test_more_device_time_than_wall_is_refused(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("timer gauges")
    full = simulated._count

    def wrong(source: str, metric: str, value: float, **labels: str) -> None:
        full(source, metric, 1.6 * value if metric == "time.forward" else value, **labels)

    simulated._count = wrong  # type: ignore[method-assign]
    play(feed, simulated)
    found = summary(web)
    assert found["evidence"] == "gauges"
    assert level_of(found, "device_timer")["state"] == "refused"
    assert "that were observed" in level_of(found, "device_timer")["note"]


def test_when_everything_contradicts_itself_nothing_is_shown(feed: Feed, web: Web) -> None:
    feed.launch()
    shape = {"batch": "1", "num_draft_tokens": "4", "overlap": "off", "clock": "device"}
    feed.send(*(
        growth(metric, value, T0 + 5_000 * index, {**rank_labels(), **labels})
        for index in range(1, 20)
        for metric, value, labels in (
            ("time.phase", 4.0, {"phase": "verify", **shape}),
            ("time.cycle", 2.0, {"kind": "speculative", **shape}),
            ("time.cycles_timed", 100.0, {"kind": "speculative", **shape}),
            ("probe.wall_time", 2.0, {}),
        )
    ))  # fmt: skip
    found = summary(web)
    assert found["evidence"] == "none"
    assert found["phases"] == []
    assert found["verdict"]["headline"] == "The times contradict each other"
    assert found["cycle_time"]["value"] is None


def test_nothing_at_all(feed: Feed, web: Web) -> None:
    feed.launch()
    found = summary(web)
    assert (found["evidence"], found["phases"], found["sensitivity"]) == ("none", [], [])
    assert found["cycles"] is None
    assert all(level["state"] == "absent" for level in found["levels"])
    assert all(level["remedy"] for level in found["levels"])


def test_a_lost_scrape_only_widens_the_interval(feed: Feed, web: Web) -> None:
    """Sums stay exact: what grew in the gap is in the next interval, whose span says so."""
    feed.launch()
    labels = rank_labels()
    for time_ms, span, share in ((5_000, 5_000, 1), (25_000, 20_000, 4), (30_000, 5_000, 1)):
        observed = [
            growth("time.forward", 3.0 * share, T0 + time_ms, {**labels, "category": "target_verify"}),
            growth(
                "engine.graph_passes", 100.0 * share, T0 + time_ms, {**labels, "mode": "decode_cuda_graph"}
            ),
        ]
        feed.send(*(structs.replace(item, span_ms=span) for item in observed))
    found = summary(web)
    assert found["cycles"] == 600
    assert found["wall_seconds"] == pytest.approx(30)
    assert row(found, "verify")["ms_per_cycle"] == pytest.approx(30)
    assert row(found, "unattributed")["ms_per_cycle"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("path", "parameters", "said"),
    [
        ("summary", {"launch": "abc"}, "neither an id"),
        ("surface", {"experts": 8}, "belong together"),
        ("surface", {"experts": 4, "experts_per_token": 8}, "do not fit"),
        ("compare", {"a": "1"}, "a alone says nothing"),
        ("compare", {"b": "x"}, "neither a launch id nor FROM/TO"),
        ("compare", {"b": "now/now-1h"}, "from"),
        ("compare", {"b": "yesterday/now"}, "is not a time"),
        ("trend", {"step": "0s"}, "step"),
    ],
)
def test_questions_that_cannot_be_answered(
    path: str, parameters: dict[str, Any], said: str, feed: Feed, web: Web
) -> None:
    feed.launch()
    answer = web.get(
        f"/api/v1/timing/{path}", params={"server": SERVER, "from": T0, "to": T0 + 1000, **parameters}
    )
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


@pytest.mark.parametrize("path", ["summary", "trend", "surface", "ranks", "compare"])
def test_an_unknown_server_is_not_found(path: str, web: Web) -> None:
    answer = web.get(f"/api/v1/timing/{path}", params={"server": "nowhere"})
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["summary", "trend", "surface", "ranks", "compare"])
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_answers_are_also_tables(path: str, form: str, feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine(), scrapes=6)
    feed.launch("b2", T0 + 60_000)
    parameters = {"server": SERVER, "from": WINDOW["from_"], "to": WINDOW["to"], "format": form}
    answer = web.get(f"/api/v1/timing/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv" if form == "csv" else "application/x-ndjson")


def test_a_closed_range_has_an_etag(feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine(), scrapes=6)
    parameters = {"server": SERVER, "from": T0, "to": T0 + 60_000}
    first = web.get("/api/v1/timing/trend", params=parameters)
    again = web.get(
        "/api/v1/timing/trend", params=parameters, headers={"If-None-Match": first.headers["etag"]}
    )
    assert (first.status_code, again.status_code) == (200, 304)


def test_a_window_that_spans_an_idle_stretch_is_no_cycle(feed: Feed, web: Web) -> None:
    """The engine's first throughput after an idle stretch is over that stretch, too: a third of the usual."""
    feed.launch()
    steady = {"tau": 2.5, "running": 4, "throughput": 4 * 2.5 / 0.030}
    feed.scrapes(20, T0, **steady)
    feed.scrapes(6, T0 + 100_000, tau=2.5, running=0, throughput=steady["throughput"])
    feed.scrapes(1, T0 + 130_000, **steady)
    feed.scrapes(2, T0 + 135_000, tau=2.5, running=4, throughput=steady["throughput"] / 3)
    feed.scrapes(4, T0 + 145_000, **{**steady, "throughput": steady["throughput"] * 1.01})
    found = summary(web)
    assert found["evidence"] == "gauges"
    assert found["cycle_time"]["value"] == pytest.approx(30, rel=0.005)
    assert row(found, "idle", inside=False)["seconds"] == pytest.approx(30, rel=0.05)
