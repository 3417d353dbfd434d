"""The page about finished requests in a browser: drawn, searched, sorted, extended, safe with any text."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from sqlalchemy import Engine
from tests.browser.conftest import HOSTILE, NARROW, WIDE, Visitor, listening, seed
from tests.server.requests.test_summary import told

from specscope_server.app import create_app
from specscope_server.kit.clock import system_clock
from specscope_server.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
CHARTS = 3
NAMES = "[...document.querySelectorAll('chart-panel')].map((panel) => panel.getAttribute('name'))"


def send(url: str, count: int = 70, labels: dict[str, str] | None = None) -> None:
    """Report requests of the last minutes: ordinary ones of two tenants, a dead one and a loop."""
    now = system_clock()
    rng = np.random.default_rng(11)
    body = [
        told(
            f"req-{n:03d}", rng.multinomial(60, [0.4, 0.2, 0.15, 0.1, 0.1, 0.05]).tolist(), now - 300_000 + n,
            prompt_tokens=20 * (n + 1), e2e_latency=0.5 + n / 10, labels=labels or {"tenant": "ab"[n % 2]},
        )
        for n in range(count)
    ]  # fmt: skip
    body += [
        told("dead", [60, 0, 0, 0, 0, 0], now - 200_000),
        told("loop", [0, 0, 0, 0, 0, 60], now - 190_000),
    ]
    sent = httpx.post(f"{url}/api/v1/requests", params={"server": "gpu1:30000"}, json=body, timeout=30)
    assert sent.json()["accepted"] == count + 2, sent.text


@pytest.fixture
def busy_site(sqlite_engine: Engine) -> Iterator[str]:
    """Address of a server with requests of a launch of K = 5."""
    seed(sqlite_engine)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        send(url)
        yield url


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_is_drawn(busy_site: str, visitor: Visitor, viewport: dict[str, int], theme: str) -> None:
    visit = visitor(busy_site, viewport, color_scheme=theme).open("/requests?by=label:tenant")
    visit.wait_for_charts()
    page = visit.page
    assert page.locator("chart-panel").count() == CHARTS
    assert page.locator("chart-panel[name=requests-accept-length] .barlayer .trace").count() == 3
    assert page.locator("chart-panel[name=requests-breakdown] .errorbar").count() >= 2
    assert page.locator("svg.spark").count() >= 25
    assert page.locator("svg.spark").first.get_attribute("aria-label")
    assert page.inner_text("[data-number=apart] .number-value").strip() == "1 / 1"
    assert page.locator(".outliers tbody tr").count() == 2
    visit.shoot(f"requests-{theme}-{viewport['width']}")
    page.click(".outliers a.request-id >> nth=1")
    page.wait_for_selector("table.histogram")
    assert "accepts more than its peers" in page.inner_text("#content")
    visit.shoot(f"request-{theme}-{viewport['width']}")
    assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert visit.problems == []


def test_more_rows_are_added_and_a_refresh_leaves_them(busy_site: str, visitor: Visitor) -> None:
    visit = visitor(busy_site).open("/requests?refresh=5")
    page = visit.page
    rows = page.locator("[data-more-rows] tr")
    assert rows.count() == 25
    for wanted in (50, 72):
        page.click("a[data-more]")
        page.wait_for_function(f"() => document.querySelectorAll('[data-more-rows] tr').length === {wanted}")
    assert page.locator("a[data-more]").count() == 0
    ids = visit.evaluate("[...document.querySelectorAll('[data-more-rows] tr')].map(r => r.dataset.request)")
    assert len(set(ids)) == 72
    before = len([url for url in visit.requests if "/fragments/requests?" in url])
    page.select_option("[data-refresh-choice]", "10")  # which refreshes at once
    page.wait_for_function(
        "() => document.querySelector('[data-refresh-status]').textContent.startsWith('read')"
    )
    page.wait_for_load_state("networkidle")
    assert len([url for url in visit.requests if "/fragments/requests?" in url]) > before
    assert rows.count() == 72
    assert visit.problems == []


def test_further_rows_by_address_stand_still(busy_site: str, visitor: Visitor) -> None:
    visit = visitor(busy_site).open("/requests")
    link = visit.page.get_attribute("a[data-more]", "href")
    visit.open(f"{link}&refresh=5")
    first = visit.page.locator("[data-more-rows] a.request-id").first.inner_text()
    with visit.page.expect_response("**/fragments/requests?**"):
        visit.page.select_option("[data-refresh-choice]", "10")
    visit.page.wait_for_load_state("networkidle")
    assert visit.page.locator("[data-more-rows] a.request-id").first.inner_text() == first
    assert visit.problems == []


def test_search_order_and_comparison_live_in_the_address(busy_site: str, visitor: Visitor) -> None:
    visit = visitor(busy_site).open("/requests")
    page = visit.page
    page.fill("input[name=search]", "tenant=a")
    page.press("input[name=search]", "Enter")
    page.wait_for_url("**search=tenant%3Da**")
    page.wait_for_selector("html[data-ready]")
    assert page.inner_text("[data-number=requests] .number-value") == "35"
    page.click("table.requests thead a >> text=Took")
    page.wait_for_url("**sort=-e2e_seconds**")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Took")
    assert page.locator("[data-more-rows] a.request-id").first.inner_text() == "req-068"
    page.click(".choices a >> text=output length")
    page.wait_for_url("**by=completion_tokens**")
    page.wait_for_selector("html[data-ready]")
    assert visit.wait_for_charts() >= 2
    asked = [url for url in visit.requests if "figures/requests-breakdown?" in url][-1]
    assert "by=completion_tokens" in asked
    assert "search=tenant" in asked
    assert "launch=newest" in asked
    page.click("nav.nav a >> text=Acceptance")
    page.wait_for_selector("html[data-ready]")
    assert "search" not in page.url
    assert visit.problems == []


def test_without_scripts_more_rows_are_a_page_away(busy_site: str, visitor: Visitor) -> None:
    visit = visitor(busy_site, java_script_enabled=False)
    page = visit.page
    page.goto(f"{busy_site}/requests")
    first = page.locator("a.request-id").first.inner_text()
    page.click("a[data-more]")
    assert "Back to the first" in page.inner_text("#content")
    assert page.locator("a.request-id").first.inner_text() != first


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_labels_and_ids_from_outside_run_nothing(
    sqlite_engine: Engine, visitor: Visitor, viewport: dict[str, int]
) -> None:
    seed(sqlite_engine)
    value = (HOSTILE + "\u202e\u05d0\u05d1👩‍👩‍👧" + "y" * 200)[:200]
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        send(url, labels={"tenant": value, "n" * 64: value, "x": ""})
        now = system_clock() - 100_000
        odd = told(HOSTILE + "z" * 100, [30, 10, 5, 3, 1, 1], now, labels={"tenant": value})
        httpx.post(f"{url}/api/v1/requests", params={"server": "gpu1:30000"}, json=odd, timeout=30)
        visit = visitor(url, viewport).open("/requests?by=label:tenant")
        visit.wait_for_charts()
        visit.shoot(f"requests-hostile-{viewport['width']}")
        assert "<img src=x" in visit.page.inner_text("#content")
        assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        visit.page.click("[data-more-rows] a.request-id >> nth=0")
        visit.page.wait_for_selector("table.histogram")
        visit.shoot(f"request-hostile-{viewport['width']}")
        assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert visit.evaluate("window.ran") is None
        assert visit.page.locator("main img").count() == 0
        assert visit.problems == []


def test_nothing_one_and_mute_requests(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open("/requests")
    assert "POST /api/v1/requests" in visit.page.inner_text("[data-hint=requests]")
    visit.wait_for_charts()
    visit.shoot("requests-none")
    mute = {"meta_info": {"id": "mute", "completion_tokens": 3, "created": system_clock() / 1_000 - 60}}
    for count, body in enumerate(([mute], [told("one", [3, 2, 1], system_clock() - 50_000)]), start=1):
        httpx.post(f"{site}/api/v1/requests", params={"server": "gpu1:30000"}, json=body, timeout=30)
        visit.open("/requests")
        visit.wait_for_charts()
        assert visit.page.locator("[data-more-rows] tr").count() == count
    visit.shoot("requests-one")
    visit.page.click("a.request-id >> text=mute")
    assert "said nothing about speculation" in visit.page.inner_text("#content")
    assert visit.problems == []


def test_an_empty_store_says_what_to_do(empty_site: str, visitor: Visitor) -> None:
    visit = visitor(empty_site).open("/requests")
    assert "specscope serve --watch" in visit.page.inner_text("#content")
    assert visit.problems == []


def test_heat_maps_appear_with_the_first_requests(busy_site: str, visitor: Visitor) -> None:
    visit = visitor(busy_site).open("/acceptance")
    visit.wait_for_charts()
    panel = "chart-panel[name=positions-survival-over-time]"
    assert visit.page.locator(f"{panel} .heatmaplayer image").count() >= 1
    area = visit.page.locator(f"{panel} .chart-area")
    assert "survival: newest" in (area.get_attribute("aria-label") or "")
    area.focus()
    before = visit.page.url
    visit.page.keyboard.press("ArrowLeft")
    assert visit.page.url != before
    visit.wait_for_charts()
    visit.shoot("acceptance-heat-maps")
    assert visit.problems == []


def test_charts_appear_when_their_data_comes_after_the_page_was_opened(
    sqlite_engine: Engine, visitor: Visitor
) -> None:
    """A page opened before the first request was reported must not hide positions until it is reloaded."""
    seed(sqlite_engine)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        visit = visitor(url).open("/acceptance?refresh=off")
        visit.wait_for_charts()
        assert visit.page.locator("chart-panel[name=positions]").count() == 0
        send(url)
        visit.page.click("button[value='now-6h']")
        visit.page.wait_for_selector("chart-panel[name=positions]")
        visit.wait_for_charts()
        names = visit.evaluate(NAMES)
        assert visit.open("/acceptance?from=now-6h&refresh=off").evaluate(NAMES) == names
        assert visit.problems == []
