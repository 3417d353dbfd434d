"""Figures of time: plotly takes them, parts end where the next begins, what is not known is a grey hatch."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import plotly.graph_objects as go
import pytest
from tests.server.client import Web
from tests.server.seed import SERVER, T0, Feed, rank_labels
from tests.server.timing.simulated import engine, play

from specscope_collectors.observations import Parallelism
from specscope_server.kit.figures import decode_floats
from specscope_server.kit.figures_theme import THEMES
from specscope_server.timing import cell_figures, examples, figures
from specscope_server.timing.colours import bar_marker
from specscope_server.timing.schemas import (
    TimingComparison,
    TimingRanks,
    TimingSummary,
    TimingSurface,
    TimingTrend,
)

NAMES = (
    "time-waterfall", "time-shares", "time-per-cycle", "time-sensitivity", "time-surface", "time-ranks",
    "time-compare",
)  # fmt: skip
DRAWN = [
    (figures.waterfall_figure, TimingSummary, examples.SUMMARY),
    (figures.sensitivity_figure, TimingSummary, examples.SUMMARY),
    (figures.shares_figure, TimingTrend, examples.TREND),
    (figures.per_cycle_figure, TimingTrend, examples.TREND),
    (cell_figures.surface_figure, TimingSurface, examples.SURFACE),
    (cell_figures.ranks_figure, TimingRanks, examples.RANKS),
    (cell_figures.comparison_figure, TimingComparison, examples.COMPARISON),
]
EMPTY: dict[str, Any] = {
    "phases": [],
    "sensitivity": [],
    "points": [],
    "cells": [],
    "ranks": [],
    "a": None,
    "same_batch": [],
}
HOSTILE = '<img src=x onerror="alert(1)"></script>' + "x" * 3_000


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES.keys())
@pytest.mark.parametrize(("draw", "model", "example"), DRAWN)
def test_plotly_accepts_every_figure(draw: Any, model: Any, example: dict[str, Any], theme: Any) -> None:
    assert go.Figure(draw(model.model_validate(example), theme)).data
    nothing = {key: EMPTY.get(key, value) for key, value in example.items()}
    assert go.Figure(draw(model.model_validate({**nothing, "is_demo": True}), theme)).data == ()


def test_each_part_begins_where_the_one_before_ends() -> None:
    drawn = figures.waterfall_figure(TimingSummary.model_validate(examples.SUMMARY), THEMES["light"])["data"]
    end = 0.0
    for bar in drawn[:-1]:
        assert bar["base"] == [pytest.approx(end)]
        end += decode_floats(bar["y"])[0]
    assert drawn[-1]["name"] == "active time"
    assert decode_floats(drawn[-1]["y"]) == [pytest.approx(end)]


def test_unattributed_time_is_a_grey_hatch() -> None:
    marker = bar_marker("unattributed", THEMES["light"])
    assert marker["pattern"]["shape"] == "/"
    assert marker["pattern"]["fgcolor"] == THEMES["light"].host


def test_what_is_extrapolated_is_hatched() -> None:
    [bars] = figures.sensitivity_figure(TimingSummary.model_validate(examples.SUMMARY), THEMES["light"])[
        "data"
    ]
    assert bars["marker"]["pattern"]["shape"] == "/"


def test_a_baselines_words_are_untrusted() -> None:
    surface = TimingSurface.model_validate(examples.SURFACE)
    assert surface.baseline is not None
    surface.baseline.note = HOSTILE
    comparison = TimingComparison.model_validate(examples.COMPARISON)
    assert comparison.a is not None
    comparison.a.words = HOSTILE
    drawn = [
        cell_figures.surface_figure(surface, THEMES["light"]),
        cell_figures.comparison_figure(comparison, THEMES["light"]),
    ]
    assert "<img" not in str([figure["data"] for figure in drawn])
    assert len(str(drawn)) < 60_000


@pytest.fixture
def played(feed: Feed, web: Web) -> Web:
    """Two launches with data."""
    feed.launch("a1", parallelism=Parallelism(tp_size=2, dp_size=1, pp_size=1))
    play(feed, engine(), engine("timer", labels=rank_labels(tp=1)), scrapes=20)
    feed.launch("b2", T0 + 200_000, parallelism=Parallelism(tp_size=2, dp_size=1, pp_size=1))
    pair = (engine(), engine("timer", labels=rank_labels(tp=1)))
    play(feed, *pair, scrapes=20, start_ms=T0 + 200_000)
    return web


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_is_served_with_its_csv(name: str, played: Web) -> None:
    parameters = {"server": SERVER, "from": T0, "to": T0 + 400_000, "launch": "newest"}
    drawn = played.get(f"/api/v1/figures/{name}", params=parameters)
    assert drawn.status_code == 200, drawn.text
    assert drawn.json()["data"]
    table = played.get(f"/api/v1/figures/{name}", params={**parameters, "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert any(row["value"] for row in rows)


def test_a_gap_stays_a_gap(played: Web) -> None:
    parameters = {"server": SERVER, "from": T0, "to": T0 + 400_000, "step": "10s"}
    bars = played.get("/api/v1/figures/time-shares", params=parameters).json()["data"]
    verify = next(bar for bar in bars if bar["name"] == "verify")
    values = decode_floats(verify["y"])
    assert all(math.isnan(value) for value in values[12:19])
    assert not any(math.isnan(value) for value in values[1:9])
