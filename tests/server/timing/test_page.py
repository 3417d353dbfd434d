"""The page about time: without data, and with each level of evidence, it says what it knows and no more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SERVER, T0, Feed
from tests.server.timing.simulated import engine, play, play_batches

HOSTILE = '<img src=x onerror="window.ran=1"></script>'


def page(web: Web, **more: Any) -> str:
    """Return the page."""
    answer = web.get("/time", params={"server": SERVER, "from": T0, "to": T0 + 300_000, **more})
    assert answer.status_code == 200, answer.text
    return answer.text


def test_time_stands_in_the_navigation_between_acceptance_and_requests(lone_web: Web) -> None:
    text = lone_web.get("/time").text
    places = [text.index(f'href="/{name}') for name in ("acceptance", "time", "requests")]
    assert places == sorted(places)


def test_without_a_server_it_says_how_to_begin(lone_web: Web) -> None:
    assert "specscope serve" in lone_web.get("/time").text


def test_an_unknown_server_is_not_found(feed: Feed, web: Web) -> None:
    feed.launch()
    assert web.get("/time", params={"server": "nowhere"}).status_code == 404
    assert web.get("/fragments/time", params={"server": "nowhere"}).status_code == 200


def test_without_times_it_says_how_to_turn_them_on(feed: Feed, web: Web) -> None:
    feed.launch()
    text = page(web)
    assert "chart-panel" not in text
    assert "SGLANG_ENABLE_METRICS_DEVICE_TIMER=1" in text
    assert "SPECSCOPE_PROBE=1" in text
    assert ">None<" not in text


@pytest.mark.parametrize(
    ("sources", "headline", "charts"),
    [
        ("gauges", "what it is made of cannot be seen yet", 4),
        ("timer gauges", "Verify takes", 5),
        ("probe timer gauges", "Verify takes", 5),
    ],
)
def test_each_level_shows_what_it_has(sources: str, headline: str, charts: int, feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine(sources))
    text = page(web)
    assert headline in text
    assert text.count("<chart-panel") == charts
    assert ("Verify cost by batch size" in text) is (sources != "gauges")
    assert "unattributed" in text


def test_two_launches_are_compared_on_the_page(feed: Feed, web: Web) -> None:
    feed.launch("a1")
    play(feed, engine(), scrapes=20)
    feed.launch("b2", T0 + 150_000)
    play(feed, engine(), scrapes=20, start_ms=T0 + 150_000)
    text = page(web)
    assert "against" in text
    assert "at equal batch sizes" in text
    assert 'name="time-compare"' in text
    assert "all 2 launches in this range" in text


def test_the_cells_of_the_surface_and_what_experts_predict(feed: Feed, web: Web) -> None:
    feed.launch()
    play_batches(feed, engine("probe gauges", per_request=1.5, jitter=0.001), (1, 4))
    text = page(web)
    assert "Verify cost, cell by cell" in text
    assert "none was measured here" in text
    assert "Experts predict at most" not in text
    assert 'name="experts"' in text
    asked = page(web, experts=384, experts_per_token=8)
    assert "Experts predict at most" in asked
    cells = web.api(
        "/timing/surface", server=SERVER, launch="newest", from_=T0, to=T0 + 300_000, experts=384,
        experts_per_token=8,
    )["cells"]  # fmt: skip
    assert len(cells) == 2
    for cell in cells:
        assert f">{cell['verify_ms']:.2f}</td>" in asked
        assert f">{cell['expected_experts_ratio']:.2f} ×</td>" in asked
    assert 'value="384"' in asked


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"experts": 384}, "belong together"),
        ({"experts": 4, "experts_per_token": 8}, "do not fit together"),
        ({"experts": HOSTILE, "experts_per_token": 8}, "is no whole number"),
    ],
    ids=["half", "too few", "hostile"],
)
def test_experts_that_cannot_be_are_said_beside_the_question(
    wrong: dict[str, Any], words: str, feed: Feed, web: Web
) -> None:
    feed.launch()
    play(feed, engine(), scrapes=10)
    text = page(web, **wrong)
    assert words in text
    assert "Verify cost, cell by cell" in text
    assert "<img src=x" not in text


def test_names_from_outside_are_escaped(feed: Feed, web: Web) -> None:
    feed.launch(engine_version=f"0.5.23{HOSTILE}", speculative={"algorithm": HOSTILE})
    play(feed, engine("gauges"), scrapes=10)
    assert "<img src=x" not in page(web)


def test_the_live_part_can_be_fetched_alone(feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine(), scrapes=10)
    text = web.get("/fragments/time", params={"server": SERVER, "from": T0, "to": T0 + 60_000}).text
    assert "<html" not in text
    assert "Where the time goes" in text
