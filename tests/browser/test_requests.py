"""Charts by draft position in a browser: drawn once requests reported histograms, and no axis of time."""

from __future__ import annotations

import httpx
import pytest
from tests.browser.conftest import WIDE, Visitor
from tests.server.requests.answers import captured

from specscope_server.kit.clock import system_clock

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_acceptance_by_position_appears_with_the_first_requests(site: str, visitor: Visitor) -> None:
    visit = visitor(site, WIDE)
    visit.open("/acceptance")
    assert "Acceptance by draft position" in visit.page.inner_text("[data-hint=requests]")
    assert visit.page.query_selector("chart-panel[name=positions]") is None

    answers = captured(system_clock() - 60_000)
    sent = httpx.post(f"{site}/api/v1/requests", params={"server": "gpu1:30000"}, json=answers, timeout=30)
    assert sent.json()["accepted"] == 20
    visit.open("/acceptance")
    visit.wait_for_charts()
    panel = "chart-panel[name=positions]"
    assert len(visit.page.query_selector_all(f"{panel} .scatterlayer .trace")) == 2
    assert len(visit.page.query_selector_all("chart-panel[name=request-lengths] .barlayer .trace")) == 1
    area = visit.page.query_selector(f"{panel} .chart-area")
    assert area is not None
    said = area.get_attribute("aria-label") or ""
    assert "survival Sₖ: newest" in said
    assert "Arrows" not in said
    before = visit.page.url
    area.focus()
    visit.page.keyboard.press("ArrowLeft")
    assert visit.page.url == before
    visit.shoot("acceptance-positions")
    assert visit.problems == []
