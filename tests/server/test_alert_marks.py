"""Alerts on charts: which fires are found, and how they are drawn into a figure over time."""

from __future__ import annotations

import orjson
import plotly.graph_objects as go
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.figures.alert_marks import add_alerts
from specscope_server.kit.figures import Figure, time_layout
from specscope_server.kit.figures_theme import LIGHT, THEMES, Theme
from specscope_server.models import AlertTransition
from specscope_server.store.alert_spans import AlertSpan, read_spans

HOSTILE = '<b onclick="x">low</b>'


def told(alert_id: str, at_ms: int, to: str, labels: dict[str, str] | None = None) -> AlertTransition:
    return AlertTransition(
        fingerprint=alert_id[:1], alert_id=alert_id, rule="low", severity="warning", from_state="pending",
        labels=orjson.dumps({"server": SERVER} if labels is None else labels).decode(), to_state=to,
        at_ms=at_ms, reason="",
    )  # fmt: skip


@pytest.fixture
def session(store_engine: Engine) -> Session:
    with Session(store_engine) as opened:
        opened.add_all(
            [
                told("a1", T0 - 900, "firing"), told("a1", T0 - 500, "recovering"),
                told("a1", T0 - 400, "firing"), told("a1", T0 + 100, "resolved"),
                told("b1", T0 - 90, "firing"), told("b1", T0 - 80, "resolved"),
                told("c1", T0 + 200, "pending"), told("c1", T0 + 300, "firing"),
                told("d1", T0 + 400, "firing", {"server": "gpu2:30000"}),
                told("e1", T0 + 500, "firing", {}),
                told("f1", T0 + 5_000, "firing"),
            ]
        )  # fmt: skip
        opened.commit()
        yield opened


def test_fires_that_touch_the_range(session: Session) -> None:
    found = [
        (span.alert_id, span.from_ms, span.to_ms) for span in read_spans(session, SERVER, T0, T0 + 1_000)
    ]
    assert found == [("a1", T0 - 900, T0 + 100), ("c1", T0 + 300, None), ("e1", T0 + 500, None)]


def figure(theme: Theme = LIGHT) -> Figure:
    return {"data": [], "layout": time_layout(theme, 0, 1_000_000)}


def span(from_ms: int, to_ms: int | None, severity: str = "warning", **labels: str) -> AlertSpan:
    return AlertSpan(f"a{from_ms}", HOSTILE, severity, {"server": SERVER, **labels}, from_ms, to_ms)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES.keys())
def test_plotly_takes_the_marks_and_names_are_escaped(theme: Theme) -> None:
    shown = figure(theme)
    add_alerts(shown, [span(100_000, 200_000, rank="3"), span(500_000, None, "critical")], theme)
    drawn = go.Figure(shown)
    assert [shape.fillcolor for shape in drawn.layout.shapes] == [theme.warn, theme.bad]
    assert drawn.layout.shapes[1].x1 == drawn.layout.xaxis.range[1]
    assert drawn.layout.annotations[0].hovertext == (
        'warning alert: &lt;b onclick="x"&gt;low&lt;/b&gt; rank=3'
    )


def test_what_overlaps_is_one_strip_and_what_begins_together_one_mark() -> None:
    shown = figure()
    add_alerts(shown, [span(1_000 * i, 400_000) for i in range(10)] + [span(300_000, 600_000)], LIGHT)
    [strip] = shown["layout"]["shapes"]
    assert (strip["x0"], strip["x1"]) == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:10:00.000Z")
    assert [mark["text"] for mark in shown["layout"]["annotations"]] == ["▲10", "▲"]
    assert shown["layout"]["annotations"][0]["hovertext"].endswith("and 4 more")


def test_a_fire_from_before_has_a_strip_and_no_mark() -> None:
    shown = figure()
    add_alerts(shown, [span(-5_000, 10_000), span(-9_000, -8_000)], LIGHT)
    assert len(shown["layout"]["shapes"]) == 1
    assert shown["layout"]["annotations"] == []


def test_figures_without_time_are_left_as_they_are() -> None:
    shown: Figure = {"data": [], "layout": {"xaxis": {"type": "category"}}}
    add_alerts(shown, [span(0, None)], LIGHT)
    assert shown == {"data": [], "layout": {"xaxis": {"type": "category"}}}


def test_charts_of_the_server_show_its_alerts(feed: Feed, web: Web, session: Session) -> None:
    feed.launch("a1", T0)
    feed.scrapes(10, T0 + 5_000, tau=2.0, calls=4, tokens=8)
    layout = web.api("/figures/accept-length", server=SERVER, from_=str(T0), to=str(NOW))["layout"]
    assert sum(shape.get("name") == "alert" for shape in layout["shapes"]) == 2  # with a gap between
    other = web.api("/figures/source-up", server=SERVER, from_=str(T0 - 10_000), to=str(T0 - 5_000))["layout"]
    assert all(shape.get("name") != "alert" for shape in other["shapes"])
