"""Figures of drift: valid for plotly with and without data, in both themes, as files; names are escaped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.drift.conftest import PHASES, TRAINED, WINDOW_MS, Served
from tests.server.seed import SERVER, T0
from tests.support.synthetic_states import Target, reference_of

from specscope_server.drift.panels import PANELS
from specscope_server.kit.figures import decode_floats

NAMES = [panel.words.name for panel in PANELS]
HOSTILE = "<img src=x onerror=alert(1)>"
Draw = Callable[..., Any]


@pytest.fixture
def store_engine(sqlite_engine: Engine) -> Engine:
    """What is drawn does not depend on the store."""
    return sqlite_engine


@pytest.fixture
def draw(web: Web) -> Draw:
    """Return a figure of the hour of the tests' clock."""

    def drawn(name: str, **more: Any) -> Any:
        return web.api(f"/figures/{name}", server=SERVER, from_="now-2h", to="now", **more)

    return drawn


def checked(figure: Any) -> go.Figure:
    """Return what plotly makes of it; what it does not know raises."""
    return go.Figure({"data": figure["data"], "layout": figure["layout"]})


def test_the_names_are_there() -> None:
    wanted = {"grid", "densities", "bands", "trend", "boundaries", "joint"}
    assert {f"drift-{name}" for name in wanted} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_plotly_accepts_every_figure(known: Served, web: Web, draw: Draw, name: str) -> None:
    assert checked(draw(name)).data == ()
    known.windows([3, 7, 10], told=TRAINED, phases=PHASES)
    known.feed.scrapes(200, tau=1.3, running=2.0)
    for theme in ("light", "dark"):
        assert len(checked(draw(name, theme=theme)).data) > 0
    table = web.get(f"/api/v1/figures/{name}", params={"server": SERVER, "from": "now-2h", "format": "csv"})
    assert table.status_code == 200
    assert table.text.count("\n") >= 3


def test_the_grid_says_in_words_what_each_slot_is(known: Served, draw: Draw) -> None:
    known.windows((2, 7, 9), told=TRAINED)
    trace = draw("drift-grid")["data"][0]
    assert trace["text"] == [["✓ same"] * 2, ["✕ boundary 7"] * 2, ["✓ same"] * 2]
    assert decode_floats(trace["z"]) == [1, 1, 3, 3, 1, 1]


def test_the_curve_has_its_minimum_at_the_boundary_by_both_statistics(known: Served, draw: Draw) -> None:
    known.windows([3, 7, 10], told=TRAINED)
    for trace in draw("drift-boundaries")["data"]:
        values = decode_floats(trace["y"])
        nearest = trace["x"][values.index(min(values))]
        slot = int(trace["name"].removeprefix("slot "))
        assert nearest == TRAINED[slot] + 1
        trained = trace["marker"]["symbol"].index(f"{('circle', 'square', 'diamond')[slot]}-open")
        assert trace["x"][trained] == TRAINED[slot]


def test_densities_are_shares_and_begin_at_training(known: Served, draw: Draw) -> None:
    known.windows()
    figure = draw("drift-densities")
    for trace in figure["data"]:
        assert sum(decode_floats(trace["y"])) == pytest.approx(1)
    assert [trace["name"] for trace in figure["data"]][:3] == ["training", "prefill", "accepted"]
    assert "version 1, 3,000 rows" in figure["layout"]["meta"]["definition"]


def test_the_trend_is_broken_and_marked_where_another_launch_begins(known: Served, draw: Draw) -> None:
    known.windows(count=2, phases=PHASES[:1])
    known.launch("b2", T0 + 2 * WINDOW_MS)
    known.windows(count=2, phases=PHASES[:1], start_ms=T0 + 2 * WINDOW_MS)
    figure = draw("drift-trend")
    values = decode_floats(figure["data"][0]["y"])
    assert [value == value for value in values] == [True, True, False, True, True]
    marks = [each["name"] for each in figure["layout"]["annotations"] if each.get("name") == "marker"]
    assert len(marks) == 2


def test_names_of_references_are_escaped(served: Served, target: Target, draw: Draw) -> None:
    served.reference(reference_of(target, TRAINED, name=HOSTILE))
    served.windows(count=1)
    for name in ("drift-bands", "drift-densities"):
        layout = draw(name)["layout"]
        assert "<img" not in layout["title"]["subtitle"]["text"]  # which plotly reads
        assert HOSTILE[:20] in layout["meta"]["definition"]  # which pages show as text


def test_without_all_boundaries_the_curve_names_places(served: Served, target: Target, draw: Draw) -> None:
    served.reference(reference_of(target, TRAINED))
    served.windows(count=1)
    trace = draw("drift-boundaries")["data"][0]
    assert trace["customdata"] == ["training slot 0", "training slot 1", "training slot 2", "last state"]
