"""Each page in a real Chromium: drawn, quiet, within the window, in both themes and at both widths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine
from tests.browser.conftest import HOSTILE_LONG, NARROW, WIDE, Visitor, listening, seed

from specscope_server.app import create_app
from specscope_server.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LIVE = {"/": 6, "/acceptance": 6, "/sources": 4}
"""Path of a page with data: least number of lines that its charts draw."""
STILL = ["/glossary", "/patterns", "/login"]


def name_of(path: str) -> str:
    """Return a path as part of a file name."""
    return path.strip("/") or "overview"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pages_with_data(site: str, visitor: Visitor, viewport: dict[str, int], theme: str) -> None:
    for path, least in LIVE.items():
        visit = visitor(site, viewport, color_scheme=theme).open(path)
        assert visit.wait_for_charts() >= least
        visit.shoot(f"{name_of(path)}-{theme}-{viewport['width']}")
        assert visit.problems == []
        assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        shown = visit.evaluate("getComputedStyle(document.body.parentElement).backgroundColor")
        assert shown == {"light": "rgb(245, 246, 248)", "dark": "rgb(15, 17, 20)"}[theme]


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pages_without_charts(empty_site: str, visitor: Visitor, viewport: dict[str, int]) -> None:
    visit = visitor(empty_site, viewport)
    for path in STILL:
        visit.page.goto(empty_site + path)
        visit.shoot(f"{name_of(path)}-{viewport['width']}")
        assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert visit.problems == []


def test_an_empty_store_says_what_to_do(empty_site: str, visitor: Visitor) -> None:
    visit = visitor(empty_site)
    for path in LIVE:
        visit.open(path)
        assert "specscope serve --watch" in visit.page.inner_text("#content")
        visit.shoot(f"{name_of(path)}-empty")
    assert visit.problems == []


def test_the_overview_answers_the_question(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open()
    assert visit.page.inner_text(".verdict h2") != ""
    assert visit.page.locator(".number").count() == 6
    visit.page.click("[data-number=accept-length] summary")
    assert "Definition" in visit.page.inner_text("[data-number=accept-length] .why-body")
    assert visit.problems == []


def test_charts_show_idle_stretches_launches_and_the_floor_of_an_old_rate(
    site: str, visitor: Visitor
) -> None:
    visit = visitor(site).open("/acceptance")
    visit.wait_for_charts()
    assert visit.page.locator("chart-panel[name=accept-length] .shapelayer path").count() >= 2
    hours = visit.page.locator("chart-panel[name=accept-length] .xtick").all_text_contents()
    assert any(
        f"{datetime.now(UTC) - timedelta(minutes=10):%H:}" in text for text in hours
    )  # not of the browser's zone
    assert "idle" in (visit.page.text_content("chart-panel[name=accept-length] .legend") or "")
    assert "floor 1/D" in (visit.page.text_content("chart-panel[name=engine-rate] .legend") or "")
    assert visit.problems == []


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_names_from_outside_run_nothing_and_break_nothing(
    sqlite_engine: Engine, visitor: Visitor, viewport: dict[str, int]
) -> None:
    seed(
        sqlite_engine,
        HOSTILE_LONG,
        model=HOSTILE_LONG,
        reason=HOSTILE_LONG,
        speculative={"draft_model": HOSTILE_LONG},
    )
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        for path, least in LIVE.items():
            visit = visitor(url, viewport).open(path)
            assert visit.wait_for_charts() >= least
            visit.shoot(f"{name_of(path)}-hostile-{viewport['width']}")
            assert "<img src=x onerror=" in visit.page.inner_text("#content")
            assert visit.evaluate("window.ran") is None
            assert visit.page.locator("main img").count() == 0
            assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            assert visit.problems == []


def test_several_servers_are_cards_and_a_choice(sqlite_engine: Engine, visitor: Visitor) -> None:
    seed(sqlite_engine)
    seed(sqlite_engine, "gpu2:30000", is_demo=True)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        visit = visitor(url).open()
        assert visit.page.locator(".server-card").count() == 2
        visit.shoot("overview-several")
        visit.page.select_option("[data-server-choice]", "gpu2:30000")
        visit.page.wait_for_selector(".number")
        assert visit.page.locator(".badge-demo").count() >= 1
        visit.wait_for_charts()
        assert visit.page.locator("chart-panel[name=load] .annotation", has_text="demo").count() == 1
        visit.shoot("overview-demo")
        assert visit.problems == []
