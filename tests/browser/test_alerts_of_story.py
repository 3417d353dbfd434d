"""From an alert of the demo's story to the page about it: at its time, with its mark on the charts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.browser.conftest import Visitor, listening
from tests.demo.stage import Stage
from tests.demo.test_alerts import SPEED, written_out
from tests.support.databases import opened

from specscope_server.app import create_app
from specscope_server.demo.alert_rules import INTERVAL_SECONDS, alerts_file
from specscope_server.demo.story import Story
from specscope_server.kit.timeparse import parse_instant
from specscope_server.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
UNTIL_SECONDS = 96
"""The right layers have just come up."""
PAGES = {"norm-drift": "/drift", "dead-draft": "/acceptance", "configuration-changed": "/sources"}
MARKS = """() => [...document.querySelectorAll(".js-plotly-plot")].map((plot) => ({
  marks: (plot.layout.annotations ?? []).filter((one) => one.name === "alert").map((one) => one.hovertext),
  shown: [...plot.querySelectorAll(".annotation")].map((one) => one.textContent),
  range: plot.layout.xaxis.range,
}))"""


@pytest.fixture(scope="module")
def story_site(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[str]:
    """Address of a server that has seen the beginning of the story, at that time."""
    folder = tmp_path_factory.mktemp("story")
    path, database = folder / "alerts.yaml", folder / "story.sqlite3"
    path.write_text(alerts_file(written_out(), SPEED))
    shutil.copyfile(sqlite_template, database)
    with opened(f"sqlite:///{database}") as engine:
        stage = Stage(engine, Story(SPEED), folder / "spool", 3, alerts=path)
        stage.upload_references()
        stage.play(UNTIL_SECONDS, 2 * INTERVAL_SECONDS, stage.alerting.turn)
        with listening(create_app(Settings(), engine=engine, clock=stage.clock)) as url:
            yield url


@pytest.mark.parametrize("rule", PAGES)
def test_an_alert_opens_its_page_at_its_time_with_its_mark(
    story_site: str, visitor: Visitor, rule: str
) -> None:
    listed = httpx.get(f"{story_site}/api/v1/alerts").json()["alerts"]
    alert = next(each for each in listed if each["rule"] == rule)
    fired_ms = instant(alert["fired"])
    visit = visitor(story_site).open(f"/alerts/{alert['alert_id']}")
    assert "It fired because" in visit.page.inner_text("main") or alert["state"] == "firing"
    visit.page.click("text=Open the page at that time")
    visit.page.wait_for_selector("html[data-ready]")
    address = urlsplit(visit.page.url)
    assert address.path == PAGES[rule]
    asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert asked["server"] == alert["labels"]["server"]
    assert instant(asked["from"]) < fired_ms < instant(asked["to"])
    visit.wait_for_charts()
    shown: list[Any] = visit.evaluate(MARKS)
    drawn = [chart for chart in shown if any(f"alert: {rule}" in mark for mark in chart["marks"])]
    assert drawn, "no chart of the page marks the alert"
    for chart in drawn:
        begin, end = chart["range"]
        assert instant(begin) <= fired_ms <= instant(end)
        assert any(text.startswith("▲") for text in chart["shown"])
    assert visit.problems == []


def instant(text: str) -> int:
    """Return epoch milliseconds."""
    return parse_instant(text, 0)
