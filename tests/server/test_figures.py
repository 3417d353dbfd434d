"""Figures: valid for plotly, gaps stay gaps, idle is shaded, words are escaped; and how they are served."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.support.acceptance_samples import START_MS, STEP_SECONDS, iso, point, rate_definition, trend

from specscope_server.acceptance import figures
from specscope_server.acceptance.schemas import AcceptanceTrend, ActivityState, Evidence, LaunchMarker
from specscope_server.figures.export import figure_csv, figure_html
from specscope_server.kit.figures import Figure, decode_floats, epoch_ms, floats, label
from specscope_server.kit.figures_theme import DARK, LIGHT, THEMES, Theme
from specscope_server.sources.figures import SourceHistory, source_duration_figure, source_up_figure
from specscope_server.store.ingest import IngestWriter

Draw = Callable[[AcceptanceTrend, Theme], Figure]
DRAWN: list[Draw] = [
    figures.acceptance_trend_figure,
    figures.strict_acceptance_figure,
    figures.engine_rate_figure,
    figures.throughput_figure,
    figures.load_figure,
]
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '</script><a href="javascript:1">x</a>',
    "x" * 5_000,
    "\u202etxet \u0000",
]


def line(figure: Figure, index: int = 0) -> list[float]:
    """Return the values of a line."""
    return decode_floats(figure["data"][index]["y"])


def history(values: dict[str, list[float | None]], **more: Any) -> SourceHistory:
    """Return a history of 3 buckets."""
    return SourceHistory(range(0, 30_000, 10_000), 10_000, 30_000, values, more.get("is_demo", False))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES.keys())
@pytest.mark.parametrize("draw", DRAWN)
def test_plotly_accepts_every_figure(draw: Draw, theme: Theme) -> None:
    for shown in (trend(), trend(is_demo=True), trend(points=[]), trend(rate_definitions=[])):
        drawn = go.Figure(draw(shown, theme))
        assert drawn.layout.paper_bgcolor == theme.paper


@pytest.mark.parametrize("draw", [source_up_figure, source_duration_figure])
def test_plotly_accepts_the_figures_of_sources(draw: Callable[[SourceHistory, Theme], Figure]) -> None:
    shown = history({"sglang_metrics": [1.0, None, 0.5], "sglang_info": [None, None, 1.0]}, is_demo=True)
    assert len(go.Figure(draw(shown, DARK)).data) == 2
    assert go.Figure(draw(history({}), LIGHT)).data == ()


@pytest.mark.parametrize("draw", DRAWN)
def test_a_gap_is_a_gap(draw: Draw) -> None:
    values = line(draw(trend(), LIGHT))
    assert all(math.isnan(value) for value in values[40:50])
    assert not math.isnan(values[39])
    assert not math.isnan(values[50])


@pytest.mark.parametrize("draw", DRAWN[:3])
def test_what_a_frozen_gauge_says_while_idle_is_not_drawn_as_a_value(draw: Draw) -> None:
    values = line(draw(trend(), LIGHT))
    assert all(math.isnan(value) for value in values[70:90])


def test_generated_tokens_of_an_idle_stretch_are_a_measured_zero() -> None:
    assert line(figures.throughput_figure(trend(), LIGHT))[70:90] == [0.0] * 20


def test_an_idle_stretch_is_one_named_band_as_long_as_it_lasted() -> None:
    layout = figures.acceptance_trend_figure(trend(), LIGHT)["layout"]
    bands = [shape for shape in layout["shapes"] if shape["type"] == "rect"]
    assert [(epoch_ms(band["x0"]), epoch_ms(band["x1"])) for band in bands] == [
        (START_MS + 70 * STEP_SECONDS * 1000, START_MS + 90 * STEP_SECONDS * 1000)
    ]
    assert bands[0]["label"]["text"] == "idle"
    assert bands[0]["showlegend"] is True


def test_points_stand_at_the_middle_of_their_step() -> None:
    times = figures.load_figure(trend(), LIGHT)["data"][0]["x"]
    assert times[0] == "2026-03-01T12:00:15.000Z"
    assert epoch_ms(times[-1]) == START_MS + 119.5 * STEP_SECONDS * 1000


@pytest.mark.parametrize(("depth", "top"), [(1, 2), (3, 4), (7, 8)])
def test_the_axis_of_the_accept_length_runs_from_1_to_k_plus_1(depth: int, top: int) -> None:
    shown = trend([point(0, num_steps=depth, accept_length=1.5), point(1, num_steps=1, accept_length=1.2)])
    low, high = figures.acceptance_trend_figure(shown, LIGHT)["layout"]["yaxis"]["range"]
    assert low == 1
    assert top <= high < top + 0.5


@pytest.mark.parametrize("draw", DRAWN[1:3])
def test_rates_are_drawn_from_0_to_1(draw: Draw) -> None:
    low, high = draw(trend(), LIGHT)["layout"]["yaxis"]["range"]
    assert low == 0
    assert 1 <= high < 1.1


def test_the_floor_is_drawn_beside_a_rate_of_the_old_definition_only() -> None:
    old = figures.engine_rate_figure(trend(), LIGHT)
    assert line(old, 1)[0] == 0.25
    assert "floor 1/D" in old["data"][1]["name"]
    strict = trend([point(0, engine_rate_floor=None)])
    assert len(figures.engine_rate_figure(strict, LIGHT)["data"]) == 1


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("τ/D", "its floor is 1/D"),
        ("(τ−1)/(D−1)", "without the bonus token"),
        ("undetermined", "Undetermined"),
    ],
)
def test_the_engine_rate_states_its_definition(formula: str, words: str) -> None:
    shown = trend(rate_definitions=[rate_definition(formula)])
    layout = figures.engine_rate_figure(shown, LIGHT)["layout"]
    assert words in layout["meta"]["definition"]
    assert "0.5.8" in layout["meta"]["definition"]
    assert layout["title"]["subtitle"]["text"]


def test_each_definition_of_the_engine_rate_is_a_line_of_its_own() -> None:
    newer = rate_definition("(τ−1)/(D−1)", "0.5.23<b>")
    shown = trend(
        [
            point(0),
            point(1, rate_formula=newer.formula, rate_engine_version="0.5.23<b>", engine_rate_floor=None),
            point(2, ActivityState.GAP),
        ],
        rate_definitions=[rate_definition(), newer],
    )
    drawn = figures.engine_rate_figure(shown, LIGHT)
    old, new, floor = (line(drawn, index) for index in range(3))
    assert [math.isnan(value) for value in old] == [False, True, True]
    assert [math.isnan(value) for value in new] == [True, False, True]
    assert [math.isnan(value) for value in floor] == [False, True, True]
    names = [trace["name"] for trace in drawn["data"]]
    assert names[0] == "printed rate τ/D by SGLang 0.5.8"
    assert names[1] == "printed rate (τ−1)/(D−1) by SGLang 0.5.23&lt;b&gt;"
    assert drawn["data"][0]["line"]["dash"] != drawn["data"][1]["line"]["dash"]
    words = drawn["layout"]["meta"]["definition"]
    assert "Definitions differ" in words
    assert words.index("τ/D by SGLang 0.5.8") < words.index("(τ−1)/(D−1) by SGLang 0.5.23")
    assert len(go.Figure(drawn).data) == 3


def test_where_no_rate_was_printed_nothing_is_called_undetermined() -> None:
    drawn = figures.engine_rate_figure(trend(rate_definitions=[]), LIGHT)
    assert drawn["layout"]["meta"]["definition"] == "No rate was printed in this range."


@pytest.mark.parametrize("draw", DRAWN)
def test_demo_data_is_watermarked_and_other_data_is_not(draw: Draw) -> None:
    texts = [
        [note["text"] for note in draw(trend(is_demo=demo), LIGHT)["layout"]["annotations"]]
        for demo in (True, False)
    ]
    assert "demo" in texts[0]
    assert "demo" not in texts[1]


@pytest.mark.parametrize("text", HOSTILE)
def test_labels_from_outside_are_escaped_and_short(text: str) -> None:
    marker = LaunchMarker(time=iso(START_MS + 60_000), launch_id=1, label=text, reason="")
    layout = figures.load_figure(trend(launches=[marker]), LIGHT)["layout"]
    for note in layout["annotations"]:
        assert "<" not in note["text"]
        assert len(note["hovertext"]) < 300
    names = [one["name"] for one in source_up_figure(history({text: [1.0, 1.0, 1.0]}), LIGHT)["data"]]
    assert "<" not in names[0]
    assert "\u202e" not in names[0]


def test_launches_close_together_share_no_room_for_their_labels() -> None:
    markers = [
        LaunchMarker(time=iso(START_MS + ms), launch_id=1, label="K = 3", reason="")
        for ms in (0, 1_000, 2_000)
    ]
    notes = figures.load_figure(trend(launches=markers), LIGHT)["layout"]["annotations"]
    assert [note["text"] for note in notes] == ["▾", "▾", "K = 3"]


def test_a_launch_close_to_the_next_shows_what_fits_of_its_label() -> None:
    markers = [
        LaunchMarker(time=iso(START_MS + 1000 * seconds), launch_id=1, label="K=5 D=6 · 0.5.8", reason="")
        for seconds in (0, 100, 350)
    ]
    notes = figures.load_figure(trend(launches=markers), LIGHT)["layout"]["annotations"]
    assert [note["text"] for note in notes] == ["K=5", "K=5 D=6", "K=5 D=6 · 0.5.8"]


@given(st.text())
def test_an_escaped_label_has_no_markup_and_no_control_characters(text: str) -> None:
    shown = label(text)
    assert "<" not in shown
    assert ">" not in shown
    assert shown.isprintable() or not text.isprintable()


@given(st.lists(st.none() | st.floats(allow_nan=False, width=64), max_size=50))
def test_typed_arrays_keep_every_value_and_every_gap(values: list[float | None]) -> None:
    read = decode_floats(floats(values))
    assert [None if math.isnan(value) else value for value in read] == values


def test_a_lone_point_between_gaps_is_seen() -> None:
    shown = trend([point(0, ActivityState.GAP), point(1), point(2, ActivityState.GAP), point(3), point(4)])
    sizes = figures.strict_acceptance_figure(shown, LIGHT)["data"][0]["marker"]["size"]
    assert [size > 0 for size in sizes] == [False, True, False, False, False]


def test_a_line_of_several_kinds_of_evidence_says_so_and_each_point_names_its_own() -> None:
    mixed = trend([point(0), point(1, evidence=Evidence.GAUGES)])
    drawn = figures.acceptance_trend_figure(mixed, LIGHT)
    line = drawn["data"][0]
    assert line["text"] == ["from counters", "from the engine's window means"]
    assert "%{text}" in line["hovertemplate"]
    assert "from counters or from the engine's window means" in drawn["layout"]["meta"]["definition"]
    alone = figures.acceptance_trend_figure(trend([point(0), point(1)]), LIGHT)
    assert "hover says which" not in alone["layout"]["meta"]["definition"]


def test_csv_is_what_is_drawn() -> None:
    drawn = figures.acceptance_trend_figure(trend([point(0), point(1, ActivityState.GAP)]), LIGHT)
    rows = list(csv.DictReader(io.StringIO(figure_csv(drawn).decode())))
    assert rows[0] == {"line": "accept length τ", "time": "2026-03-01T12:00:15.000Z", "value": "2.0"}
    assert rows[1]["value"] == ""
    assert len(rows) == 4


def test_the_html_export_lets_no_label_become_markup() -> None:
    marker = LaunchMarker(time=iso(START_MS + 60_000), launch_id=1, label="</script><script>x", reason="")
    page = figure_html(figures.load_figure(trend(launches=[marker]), LIGHT), "lib('</script>')").decode()
    assert page.count("</script>") == 2
    assert "http" not in page


@pytest.fixture
def seeded(sqlite_engine: Engine) -> Web:
    """A server with half an hour of data: 4 scrapes' growth of 10 cycles and 21 tokens each, then more."""
    from specscope_server.app import create_app
    from specscope_server.settings import Settings

    feed = Feed(IngestWriter(sqlite_engine, lambda: NOW))
    feed.launch()
    feed.scrapes(
        300,
        tau=2.0,
        rate=1 / 3,
        depth=3,
        width=4,
        running=2,
        queued=0,
        throughput=80,
        calls=40,
        tokens=82,
        finished=2,
    )
    feed.health(T0 + 1_500_000)
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


def test_every_figure_of_the_list_is_served_and_valid(seeded: Web) -> None:
    listed = seeded.api("/figures")["figures"]
    assert {"accept-length", "draft-acceptance", "engine-rate", "throughput", "load", "source-up"} <= {
        f["name"] for f in listed
    }
    for item in listed:
        document = seeded.api(f"/figures/{item['name']}", server=SERVER, from_="now-1h", theme="dark")
        drawn = go.Figure(document)
        assert drawn.layout.paper_bgcolor == DARK.paper
        assert document["layout"]["meta"]["title"] == item["title"]


def test_a_figure_draws_what_the_trend_says(seeded: Web) -> None:
    asked = {"server": SERVER, "from_": iso(T0), "to": iso(NOW), "step": "60s"}
    points = seeded.api("/acceptance/trend", **asked)["points"]
    drawn = seeded.api("/figures/accept-length", **asked)
    active = [p["accept_length"] if p["state"] == "active" else None for p in points]
    assert [None if math.isnan(value) else value for value in line(drawn)] == active
    assert any(value is not None for value in active)


@pytest.mark.parametrize(("chosen", "media"), [("csv", "text/csv"), ("html", "text/html")])
def test_exports_are_files_to_save(seeded: Web, chosen: str, media: str) -> None:
    answer = seeded.get("/api/v1/figures/load", params={"server": SERVER, "format": chosen})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(media)
    assert answer.headers["content-disposition"] == f'attachment; filename="specscope-load.{chosen}"'


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("accept-lenght", {"server": SERVER}, 404, "Did you mean 'accept-length'?"),
        ("load", {"server": "gpu9"}, 404, "gpu9"),
        ("load", {"server": SERVER, "from": "yesterday"}, 422, "from"),
        ("load", {"server": SERVER, "theme": "pink"}, 422, "theme"),
        ("load", {}, 422, "server"),
        ("load", {"server": SERVER, "format": "gif"}, 422, "format"),
    ],
)
def test_a_wrong_question_gets_the_reason(
    seeded: Web, path: str, query: dict[str, str], status: int, words: str
) -> None:
    answer = seeded.get(f"/api/v1/figures/{path}", params=query)
    assert answer.status_code == status
    assert words in answer.json()["detail"]


def test_a_closed_range_may_be_kept_by_the_browser(seeded: Web) -> None:
    query = {"server": SERVER, "from": iso(T0), "to": iso(T0 + 600_000)}
    first = seeded.get("/api/v1/figures/load", params=query)
    again = seeded.get("/api/v1/figures/load", params=query, headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
