"""The page about time in a browser: drawn with data and without, a trace captured by its button."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, update
from tests.browser.conftest import NARROW, WIDE, Visitor, listening
from tests.server.seed import SCRAPE_MS, Feed, rank_labels
from tests.server.timing.simulated import engine, play
from tests.support.profiled import FarSide, profiled_engine

from specscope_collectors.observations import Parallelism
from specscope_server.app import create_app
from specscope_server.kit.clock import system_clock
from specscope_server.models import Server
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
CHARTS = ["waterfall", "shares", "per-cycle", "surface", "sensitivity", "compare", "ranks"]
SCRAPES = 60


def seed_times(store: Engine, base_url: str) -> None:
    """Write ten minutes up to now: two launches, the second with faster verify, on two ranks."""
    now = system_clock() // SCRAPE_MS * SCRAPE_MS
    feed = Feed(IngestWriter(store))
    feed.target = type(feed.target)(name="gpu1", base_url=base_url)
    for place, verify in enumerate((40.0, 30.0)):
        start = now - (2 - place) * SCRAPES * SCRAPE_MS
        feed.launch(f"k{place}", start, parallelism=Parallelism(tp_size=2, dp_size=1, pp_size=1))
        parts = {"draft": 1.4, "verify_prepare": 0.2, "verify": verify, "sampling": 0.5, "draft_extend": 0.6}
        first = engine(parts=parts, seed=place)
        late = engine("probe", parts=parts, seed=place, labels=rank_labels(tp=1), late_ms=3.0)
        play(feed, first, late, scrapes=SCRAPES, start_ms=start)
    with store.begin() as connection:
        connection.execute(update(Server).values(created_ms=now - 2 * SCRAPES * SCRAPE_MS))


@pytest.fixture
def far() -> Iterator[FarSide]:
    """The engine that is asked for captures."""
    with profiled_engine() as found:
        yield found


@pytest.fixture
def timed_site(sqlite_engine: Engine, far: FarSide, tmp_path: Path) -> Iterator[str]:
    """Address of a server that knows where the time of two launches went."""
    seed_times(sqlite_engine, far.url)
    with listening(create_app(Settings(trace_capture_folder=tmp_path), engine=sqlite_engine)) as url:
        yield url


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_is_drawn(timed_site: str, visitor: Visitor, viewport: dict[str, int], theme: str) -> None:
    visit = visitor(timed_site, viewport, color_scheme=theme).open("/time")
    visit.wait_for_charts()
    page = visit.page
    drawn = [panel.get_attribute("name") for panel in page.query_selector_all("chart-panel")]
    assert drawn == [f"time-{name}" for name in CHARTS]
    assert page.locator(".chart-message:visible").count() == 0
    assert "Verify takes 90 %" in page.inner_text(".verdict")
    assert "tp 1" in page.inner_text("#content")
    assert page.locator("chart-panel[name=time-waterfall] .barlayer .trace").count() >= 6
    visit.shoot(f"time-{theme}-{viewport['width']}")
    assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert visit.problems == []


def test_it_says_what_experts_predict(timed_site: str, visitor: Visitor) -> None:
    visit = visitor(timed_site, NARROW).open("/time")
    visit.wait_for_charts()
    visit.page.fill("[name=experts]", "384")
    visit.page.fill("[name=experts_per_token]", "8")
    visit.page.click("#experts button")
    visit.wait_for_charts()
    assert "Experts predict at most" in visit.page.inner_text("#verify-cost")
    assert visit.page.input_value("[name=experts]") == "384"
    assert visit.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert visit.problems == []


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_without_times_it_says_how_to_get_them(site: str, visitor: Visitor, viewport: dict[str, int]) -> None:
    visit = visitor(site, viewport).open("/time?from=now-2m&to=now-1m&launch=1")
    visit.wait_for_charts()
    text = visit.page.inner_text("#content")
    assert "SGLANG_ENABLE_METRICS_DEVICE_TIMER=1" in text
    assert "NaN" not in text
    visit.shoot(f"time-none-{viewport['width']}")
    assert visit.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert visit.problems == []


def test_nobody_is_watched(empty_site: str, visitor: Visitor) -> None:
    visit = visitor(empty_site).open("/time")
    assert "specscope serve --watch" in visit.page.inner_text("#content")
    assert visit.problems == []


def test_a_server_that_died_leaves_the_page_and_says_so(
    sqlite_engine: Engine, far: FarSide, visitor: Visitor
) -> None:
    seed_times(sqlite_engine, far.url)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        visit = visitor(url).open("/time?refresh=5")
        visit.wait_for_charts()
    page = visit.page
    page.wait_for_selector("#connection:visible")
    visit.shoot("time-dead")
    assert page.locator("chart-panel[name=time-waterfall] .barlayer .trace").count() >= 6
    assert "Verify takes 90 %" in page.inner_text(".verdict")


def test_a_trace_is_captured_by_the_button(timed_site: str, visitor: Visitor, far: FarSide) -> None:
    far.writes_itself = False
    visit = visitor(timed_site).open("/time?refresh=5")
    page = visit.page
    page.click("text=Capture…")
    assert far.asked == []  # the dialog was dismissed
    assert visit.problems == ["dialog"]
    page.evaluate("window.confirm = (text) => { window.asked = text; return true; }")
    page.fill(".capture-form input[name=steps]", "20")
    page.click("text=Capture…")
    page.wait_for_selector("[data-capture=running]")
    assert "generates nothing until the files are written" in visit.evaluate("window.asked")
    assert page.is_disabled("text=Capture…")
    visit.shoot("time-capture")
    far.write()
    page.wait_for_selector("[data-capture=done] a")
    assert far.asked[0][0]["num_steps"] == 20
    page.click("[data-capture=done] a")
    page.wait_for_selector("chart-panel[name=trace-phases]")
    assert "14" in page.inner_text("#traces")
