"""The picture of what fired when."""

from __future__ import annotations

import plotly.graph_objects as go
from tests.server.seed import SERVER

from specscope_server.alerts.figures import MAX_ROWS, timeline_figure
from specscope_server.figures.export import figure_csv
from specscope_server.kit.figures import decode_floats
from specscope_server.kit.figures_theme import DARK
from specscope_server.store.alert_spans import AlertSpan


def span(rule: str, from_ms: int, to_ms: int | None, **labels: str) -> AlertSpan:
    return AlertSpan(f"{rule}{from_ms}", rule, "critical", {"server": SERVER, **labels}, from_ms, to_ms)


def test_each_rule_and_label_set_has_a_row_and_each_fire_a_stretch() -> None:
    spans = [span("a", -50, 10), span("a", 30, 40), span("b", 20, None, rank="<1>")]
    drawn = timeline_figure(spans, 0, 100, DARK, is_demo=True)
    assert drawn["layout"]["yaxis"]["ticktext"] == ["a", "b rank=&lt;1&gt;"]
    first, second = drawn["data"]
    assert first["x"][:2] == ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.010Z"]
    assert second["x"][1] == "1970-01-01T00:00:00.100Z"  # it still fires
    assert str(decode_floats(first["y"])) == str([0.0, 0.0, float("nan")] * 2)
    assert go.Figure(drawn).layout.annotations[-1].text == "demo"
    assert figure_csv(drawn).startswith(b"line,time,value\r\na,1970-01-01T00:00:00.000Z,0.0")


def test_no_more_rows_than_can_be_read() -> None:
    spans = [span(f"r{number}", 0, number + 1) for number in range(30)]
    ticks = timeline_figure(spans, 0, 100, DARK, is_demo=False)["layout"]["yaxis"]["ticktext"]
    assert len(ticks) == MAX_ROWS
    assert ticks[-1] == "r29"


def test_nothing_fired() -> None:
    assert timeline_figure([], 0, 100, DARK, is_demo=False)["data"] == []
