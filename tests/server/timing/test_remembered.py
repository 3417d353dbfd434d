"""A page and its charts compute each answer once, and never show one from before a batch."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.server.timing.simulated import engine, play

from specscope_server.kit.web.params import TimeRange
from specscope_server.timing import panels
from specscope_server.timing.remembered import Remembered, range_key

SPAN = TimeRange(T0, NOW, NOW, None, 300, 10_000)
CHARTS = ("waterfall", "shares", "per-cycle", "surface", "sensitivity", "compare", "ranks")


def test_a_page_and_its_charts_compute_the_summary_once(
    feed: Feed, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[str, int] = {}
    for name in ("summary", "trend", "surface", "compare", "ranks"):
        real = getattr(panels, name)

        def counted(*given: object, name: str = name, real: object = real) -> object:
            counts[name] = counts.get(name, 0) + 1
            return real(*given)  # type: ignore[operator]

        monkeypatch.setattr(panels, name, counted)
    feed.launch()
    play(feed, engine(), scrapes=20)
    query = {"server": SERVER, "from": "now-1h", "to": "now"}
    for _ in range(2):
        assert web.get("/time", params=query).status_code == 200
        for chart in CHARTS:
            assert web.get(f"/api/v1/figures/time-{chart}", params=query).status_code == 200, chart
    assert counts == {"summary": 1, "trend": 1, "surface": 1, "compare": 1, "ranks": 1}
    before = web.get("/time", params=query).text
    play(feed, engine(seed=2, batch=6), scrapes=20, first=20)
    assert web.get("/time", params=query).text != before
    assert counts["summary"] == 2


def test_ranges_are_told_apart() -> None:
    later = replace(SPAN, from_ms=T0 + 1_000, to_ms=NOW + 1_000, now_ms=NOW + 1_000)
    assert range_key(SPAN) == range_key(later)
    assert range_key(SPAN) != range_key(replace(later, from_ms=T0))
    assert range_key(SPAN) != range_key(replace(SPAN, points=100))
    closed = replace(SPAN, to_ms=T0 + 60_000)
    assert range_key(closed) != range_key(replace(closed, from_ms=T0 + 1, to_ms=T0 + 60_001))
    assert range_key(SPAN) != range_key(
        replace(later, to_ms=NOW + 9_000, now_ms=NOW + 9_000, from_ms=T0 + 9_000)
    )


def test_who_asks_at_once_waits_for_the_first() -> None:
    known, began, calls = Remembered(), threading.Barrier(4), list[int]()

    def count() -> int:
        calls.append(1)
        return len(calls)

    def ask(_: int) -> int:
        began.wait(10)
        return known.once("key", count)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [1, 1, 1, 1]


def test_errors_and_old_answers_are_not_kept() -> None:
    known = Remembered(most=2)
    with pytest.raises(ZeroDivisionError):
        known.once("a", lambda: 1 // 0)
    assert known.once("a", lambda: 5) == 5
    assert [known.once(key, lambda: 6) for key in ("b", "c")] == [6, 6]
    assert known.once("a", lambda: 7) == 7
