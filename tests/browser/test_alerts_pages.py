"""The pages about alerts in a browser: what fires, one alert, taking it on, silences, rules, channels."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import Engine
from tests.browser.conftest import HOSTILE, NARROW, WIDE, Visit, Visitor, listening, seed

from specscope_server.app import create_app
from specscope_server.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
RULE: dict[str, Any] = {
    "name": "always", "title": f"Always {HOSTILE}", "severity": "critical", "category": "acceptance",
    "condition": {"kind": "threshold", "signal": "metric:spec.num_steps", "window": "10m", "above": 1},
    "annotations": {"note": HOSTILE},
}  # fmt: skip
PATIENCE_SECONDS = 120.0
ANSWER = "[data-test-channel] [data-answer]"


@pytest.fixture
def loud_site(sqlite_engine: Engine) -> Iterator[str]:
    """Address of a server on which one rule fires."""
    seed(sqlite_engine)
    with listening(create_app(Settings(alert_interval_seconds=1), engine=sqlite_engine)) as url:
        made = httpx.post(f"{url}/api/v1/alerts/rules", json={"rule": RULE}, timeout=30)
        assert made.status_code == 200, made.text
        firing(url)
        yield url


def firing(url: str) -> dict[str, Any]:
    """Wait until the rule fires; return its alert."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        alerts = httpx.get(f"{url}/api/v1/alerts", params={"rule": "always"}).json()["alerts"]
        if alerts and alerts[0]["state"] == "firing":
            return dict(alerts[0])
        time.sleep(0.2)
    raise AssertionError("the rule did not fire")


def settled(visit: Visit, selector: str, pattern: str) -> str:
    """Wait until an element says what is expected; return its text."""
    visit.page.wait_for_function(
        "([where, what]) => new RegExp(what).test(document.querySelector(where)?.textContent ?? '')",
        arg=[selector, pattern],
    )
    return str(visit.page.text_content(selector))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_what_fires_is_drawn(loud_site: str, visitor: Visitor, viewport: dict[str, int], theme: str) -> None:
    visit = visitor(loud_site, viewport, color_scheme=theme).open("/alerts")
    visit.wait_for_charts()
    assert "critical, fires for" in str(visit.page.text_content(".alerts"))
    assert "alert fires" in str(visit.page.text_content(".verdict")) or "alerts fire" in str(
        visit.page.text_content(".verdict")
    )
    width = visit.evaluate("() => document.documentElement.scrollWidth")
    visit.shoot(f"alerts-{theme}-{viewport['width']}")
    assert width <= viewport["width"]
    for path, name in (
        ("/alerts/rules", "rules"),
        ("/alerts/channels", "channels"),
        ("/alerts/edit?name=always", "edit"),
    ):
        visit.open(path)
        if name == "edit":
            settled(visit, "[data-editor-answer]", "What it says now")
        visit.shoot(f"alerts-{name}-{theme}-{viewport['width']}")
        assert visit.evaluate("() => document.documentElement.scrollWidth") <= viewport["width"], path
    alert = firing(loud_site)
    visit.open(f"/alerts/{alert['alert_id']}")
    visit.shoot(f"alert-{theme}-{viewport['width']}")
    assert visit.evaluate("() => document.documentElement.scrollWidth") <= viewport["width"]
    assert visit.evaluate("() => window.ran") is None
    assert visit.problems == []


def test_an_alert_is_taken_on_and_given_back(loud_site: str, visitor: Visitor) -> None:
    visit = visitor(loud_site).open("/alerts")
    visit.page.click(".alerts h3 a")
    visit.page.fill("[name=owner]", "Ada")
    visit.page.click("text=I look after it")
    visit.page.wait_for_selector("text=Ada looks after it")
    assert firing(loud_site)["acked_by"] == "Ada"
    visit.page.click("text=Give it back")
    visit.page.wait_for_selector("text=I look after it")
    assert firing(loud_site)["acked_by"] is None
    assert visit.problems == []


def test_alerts_are_silenced_from_the_page(loud_site: str, visitor: Visitor) -> None:
    visit = visitor(loud_site).open("/alerts")
    visit.page.fill("[name=matchers]", "no condition")
    visit.page.fill("[name=reason]", "new draft")
    visit.page.click("[data-silence-form] button")
    settled(visit, "[data-silence-form] [data-answer]", "is no condition")
    visit.page.fill("[name=matchers]", 'rule="always"')
    visit.page.click("[data-silence-preview]")
    settled(visit, "[data-silence-form] [data-answer]", "It would mute 1 of the alerts that fire now")
    settled(visit, "[data-preview]", "firing")
    assert httpx.get(f"{loud_site}/api/v1/alerts/silences").json()["silences"] == []
    visit.page.click("[data-silence-form] button")
    settled(visit, "[data-silence-form] [data-answer]", "Silenced. (It matches|Look again)")
    settled(visit, "[data-live=alerts_history]", "new draft")
    [silence] = httpx.get(f"{loud_site}/api/v1/alerts/silences").json()["silences"]
    assert silence["text"] == 'rule="always"'
    assert visit.problems == []


def test_a_rule_is_written_checked_tried_and_stored(loud_site: str, visitor: Visitor) -> None:
    visit = visitor(loud_site).open("/alerts/edit")
    settled(visit, "[data-editor-answer]", "What it says now")
    text = visit.page.input_value("[name=text]")
    visit.page.fill("[name=text]", text.replace("below:", "belov:"))
    shown = settled(visit, "[data-editor-answer]", "It cannot be used yet")
    assert re.search(r"line \d+: .*belov", shown, re.DOTALL)
    visit.page.fill("[name=text]", text.replace("low-acceptance", "mine", 1))
    settled(visit, "[data-editor-answer]", "What it says now")
    visit.page.select_option("[name=from]", "now-1d")
    visit.page.click("[data-action=backtest]")
    settled(visit, "[data-editor-answer]", "fired")
    visit.page.wait_for_selector("[data-figure] .scatterlayer .trace")
    visit.shoot("alerts-edit-tried")
    visit.page.click("[data-action=save]")
    visit.page.wait_for_url("**/alerts/edit?name=mine")
    settled(visit, "[data-editor-answer]", "What it says now")
    assert httpx.get(f"{loud_site}/api/v1/alerts/rules/mine").json()["version"] == 1
    assert visit.problems == []


def test_a_channel_is_added_and_tested(loud_site: str, visitor: Visitor) -> None:
    visit = visitor(loud_site).open("/alerts/channels")
    visit.page.click("text=Alertmanager >> nth=0")
    form = visit.page.locator("details[open].kind form")
    form.locator("[name=name]").fill("am")
    form.locator("[name='settings.url']").fill("http://127.0.0.1:9/")
    form.locator("button").click()
    settled(visit, "[data-live=alert_channels_list]", "am")
    held: list[Route] = []
    visit.page.route("**/alerts/channels/am/test", lambda route: held.append(route))
    visit.page.click("text=Send a test")
    settled(visit, ANSWER, "Sending a test")
    form.locator("[name=name]").fill("another")  # while the test is under way, the list is fetched anew
    form.locator("button").click()
    settled(visit, "[data-live=alert_channels_list]", "another")
    held[0].continue_()
    settled(visit, ANSWER, "Not delivered")
    settled(visit, "[data-live=alert_channels_list]", "Last failure")  # and once more after the answer
    assert "Not delivered" in str(visit.page.text_content(ANSWER))
    assert visit.page.locator("[data-test-channel] button").first.is_enabled()
    visit.shoot("alerts-channel-tested")
    assert visit.problems == []


@pytest.mark.parametrize("path", ["/alerts", "/alerts/rules", "/alerts/channels", "/alerts/edit"])
def test_pages_without_data(empty_site: str, visitor: Visitor, path: str) -> None:
    visit = visitor(empty_site).open(path)
    visit.shoot(f"alerts-empty{path.replace('/', '-')}")
    assert visit.problems == []


def test_an_alert_that_is_not_there(empty_site: str, visitor: Visitor) -> None:
    visit = visitor(empty_site)
    answer = visit.page.goto(f"{empty_site}/alerts/nope")
    assert answer is not None
    assert answer.status == 404
    assert "there is no alert" in visit.page.inner_text("main")
