"""Using a page: keyboard, ranges, themes, refresh, and a server that goes away."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Engine
from tests.browser.conftest import Visitor, listening, seed

from specscope_server.app import create_app
from specscope_server.kit.plotly_library import read_library
from specscope_server.pages import assets
from specscope_server.pages.templates import environment
from specscope_server.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_a_range_is_chosen_with_the_keyboard_and_lives_in_the_url(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open()
    visit.wait_for_charts()
    button = visit.page.locator("button[value='now-6h']")
    button.focus()
    with visit.page.expect_response(
        lambda response: "/figures/accept-length" in response.url and "now-6h" in response.url
    ):
        visit.page.keyboard.press("Enter")
    assert visit.page.url == f"{site}/?from=now-6h"
    assert button.get_attribute("aria-pressed") == "true"
    visit.page.go_back()
    assert button.get_attribute("aria-pressed") == "false"
    assert visit.problems == []


def test_state_in_the_url_round_trips(site: str, visitor: Visitor) -> None:
    path = "/acceptance?from=now-6h&refresh=30&server=gpu1%3A30000&theme=dark"
    visit = visitor(site).open(path)
    visit.wait_for_charts()
    assert visit.page.input_value("[data-refresh-choice]") == "30"
    assert visit.page.input_value("[data-theme-choice]") == "dark"
    assert visit.page.input_value("[data-server-choice]") == "gpu1:30000"
    visit.page.click(".nav a:has-text('Sources')")
    visit.page.wait_for_selector("html[data-ready]")
    assert visit.page.url.startswith(f"{site}/sources?")
    assert parse_qs(urlsplit(visit.page.url).query) == parse_qs(urlsplit(path).query)
    assert visit.problems == []


def test_a_custom_range_is_typed_and_a_wrong_one_is_explained(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open()
    visit.wait_for_charts()
    visit.page.click("[data-custom-range]")
    visit.page.fill("#custom-range input[name=from]", "now-20m")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_function("() => location.search.includes('now-20m')")
    visit.page.fill("#custom-range input[name=from]", "yesterday")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector(".problem:has-text('yesterday')")
    assert "is not a time" in visit.page.inner_text("#content")
    assert visit.page.is_hidden("#connection")


def test_one_explanation_is_open_at_a_time_and_escape_closes_it(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open()
    why, opened = visit.page.locator(".why summary"), visit.page.locator(".why[open]")
    why.nth(0).click()
    why.nth(1).click()
    assert opened.count() == 1
    visit.page.keyboard.press("Escape")
    assert opened.count() == 0
    assert why.nth(1).evaluate("each => each === document.activeElement")
    why.nth(2).click()
    visit.page.click("h1")
    assert opened.count() == 0


def test_a_launch_that_is_over_is_shown_from_its_beginning_to_its_end(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open("/acceptance")
    visit.page.locator(".launches a", has_text="only this").last.click()
    visit.page.wait_for_url("**launch=*")
    query = parse_qs(urlsplit(visit.page.url).query)
    assert query["from"] < query["to"]
    visit.page.locator(".launches a", has_text="back to the newest").click()
    visit.page.wait_for_url(lambda url: "launch=" not in url and "from=" not in url)


def test_arrows_on_a_chart_move_every_chart_in_time(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open()
    visit.wait_for_charts()
    area = visit.page.locator("chart-panel[name=accept-length] .chart-area")
    assert "newest" in (area.get_attribute("aria-label") or "")
    area.focus()
    visit.page.keyboard.press("ArrowLeft")
    visit.page.wait_for_function("() => /from=20.*to=20/.test(location.search)")
    for name in ("accept-length", "throughput"):
        with visit.page.expect_response(lambda response, name=name: f"/figures/{name}" in response.url):
            visit.page.keyboard.press("-")
    assert visit.problems == []


def test_the_theme_changes_without_loading_the_page_anew(site: str, visitor: Visitor) -> None:
    visit = visitor(site, color_scheme="light").open()
    visit.wait_for_charts()
    visit.evaluate("window.stayed = true")
    visit.page.select_option("[data-theme-choice]", "dark")
    visit.page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.main-svg')).backgroundColor === 'rgb(22, 25, 29)'"
    )
    assert visit.evaluate("window.stayed") is True
    assert "theme=dark" in visit.page.url
    assert visit.problems == []


def test_the_first_tab_stop_skips_to_the_content(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open()
    visit.page.keyboard.press("Tab")
    assert visit.evaluate("document.activeElement.textContent") == "Skip to content"
    visit.page.keyboard.press("Enter")
    assert visit.evaluate("document.activeElement.id") == "content"


def test_refreshing_keeps_what_was_opened_and_focused(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open("/?refresh=off")
    visit.wait_for_charts()
    visit.page.click("[data-number=throughput] summary")
    for _ in range(2):
        with visit.page.expect_response(re.compile("/fragments/overview")):
            visit.page.dispatch_event("[data-connection-retry]", "click")
    visit.page.wait_for_function("() => document.querySelector('[data-live]').dataset.received")
    assert visit.evaluate("document.querySelector('[data-number=throughput] details').open") is True
    assert visit.evaluate("document.activeElement.closest('[data-number]').dataset.number") == "throughput"
    assert visit.problems == []


def test_a_page_refreshes_itself_and_stops_when_told(site: str, visitor: Visitor) -> None:
    visit = visitor(site)
    visit.page.clock.install()
    visit.open("/?refresh=5")
    visit.wait_for_charts()
    with visit.page.expect_response(re.compile("/fragments/overview")):
        visit.page.clock.run_for(6_000)
    visit.page.select_option("[data-refresh-choice]", "off")
    visit.page.wait_for_function(
        "() => document.querySelector('[data-refresh-status]').textContent.includes('off')"
    )
    before = len(visit.requests)
    visit.page.clock.run_for(600_000)
    assert len(visit.requests) == before


def test_when_the_server_goes_away_the_page_says_so_and_keeps_its_numbers(
    sqlite_engine: Engine, visitor: Visitor
) -> None:
    seed(sqlite_engine)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        visit = visitor(url).open("/?refresh=off")
        lines = visit.wait_for_charts()
        value = visit.page.inner_text("[data-number=accept-length] .number-value")
    visit.page.dispatch_event("[data-connection-retry]", "click")
    visit.page.wait_for_selector("#connection:not([hidden])")
    assert "Server not answering since" in visit.page.inner_text("#connection")
    assert visit.page.inner_text("[data-number=accept-length] .number-value") == value
    assert len(visit.page.query_selector_all(".scatterlayer .trace")) == lines
    visit.shoot("overview-server-away")
    assert not [problem for problem in visit.problems if "exception" in problem or "origin" in problem]


def test_when_only_the_api_fails_panels_and_banner_say_so_and_recover(site: str, visitor: Visitor) -> None:
    visit = visitor(site)
    visit.page.route("**/api/v1/figures/**", lambda route: route.fulfill(status=500, body="{}"))
    visit.open("/?refresh=off")
    visit.page.wait_for_selector("#connection:not([hidden])")
    assert visit.page.locator(".chart-message", has_text="Waiting for the server.").count() >= 1
    visit.shoot("overview-api-failing")
    visit.page.unroute("**/api/v1/figures/**")
    visit.page.click("[data-connection-retry]")
    visit.page.wait_for_selector("#connection", state="hidden")
    assert visit.wait_for_charts() >= 6


def test_the_larger_library_of_the_python_package_draws_as_well(
    site: str, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = read_library(tmp_path / "absent.js")
    monkeypatch.setattr(assets, "plotly_library", lambda: full)
    monkeypatch.setitem(environment().globals, "plotly", full)
    visit = visitor(site).open()
    assert visit.wait_for_charts() >= 6
    assert any(full.url in request for request in visit.requests)
    assert visit.problems == []


def test_without_scripts_numbers_and_ranges_still_work(site: str, visitor: Visitor) -> None:
    visit = visitor(site, java_script_enabled=False)
    visit.page.goto(site)
    assert visit.page.locator(".number").count() == 6
    visit.page.click("button[value='now-6h']")
    assert visit.page.url == f"{site}/?from=now-6h"
    assert visit.page.locator("button[value='now-6h'][aria-pressed=true]").count() == 1
