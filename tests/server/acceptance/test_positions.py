"""Acceptance by position through the API: launches and depths stay apart, and each number has its counts."""

from __future__ import annotations

from types import SimpleNamespace

import plotly.graph_objects as go
import pytest
from tests.server.client import Web
from tests.server.requests.answers import answer, captured, post
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.acceptance.position_figures import positions_figure, request_lengths_figure
from specscope_server.acceptance.position_schemas import AcceptancePositions
from specscope_server.acceptance.survival import depth_of
from specscope_server.kit.figures import decode_floats
from specscope_server.kit.figures_theme import DARK, LIGHT

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}


def test_the_worked_example(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, answer())
    found = web.api("/acceptance/positions", **WINDOW)
    [group] = found["groups"]
    assert (group["num_steps"], group["requests"], group["cycles"]) == (3, 1, 13)
    assert group["accept_length"] == pytest.approx(2.3846, abs=1e-4)
    assert group["sums_to_accept_length"] is True
    assert [(p["offered"], p["accepted"]) for p in group["positions"]] == [(13, 7), (7, 7), (7, 4)]
    assert group["positions"][0]["is_few"] is True
    assert found["note"] == ""


def test_real_answers_add_up_and_short_histograms_count_to_the_end(web: Web, feed: Feed) -> None:
    feed.launch()
    answers = captured(T0 + 60_000)
    post(web, answers)
    [group] = web.api("/acceptance/positions", **WINDOW)["groups"]
    total = [0, 0, 0, 0]
    for each in answers:
        for index, steps in enumerate(each["meta_info"]["spec_correct_drafts_histogram"]):
            total[index] += steps
    reached = [sum(total[k:]) for k in range(4)]
    assert [p["accepted"] for p in group["positions"]] == reached[1:]
    assert [p["offered"] for p in group["positions"]] == reached[:-1]
    assert (group["cycles"], group["requests"]) == (317, 20)
    assert group["positions"][0]["survival_low"] < group["positions"][0]["survival"]
    assert sum(group["length_requests"]) == 20


def test_launches_and_depths_never_mix(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 600_000, speculative={"num_steps": 5, "num_draft_tokens": 6})
    deep = {"spec_num_proposed_drafts": 65}
    post(web, [answer("x"), answer("y", T0 + 700_000, **deep), answer("z", T0 + 800_000, **deep)])
    groups = web.api("/acceptance/positions", **WINDOW)["groups"]
    assert [(g["num_steps"], g["requests"], len(g["positions"])) for g in groups] == [(3, 1, 3), (5, 2, 5)]
    assert groups[0]["launch"]["id"] != groups[1]["launch"]["id"]
    newest = web.api("/acceptance/positions", launch="newest", **WINDOW)["groups"]
    assert [g["num_steps"] for g in newest] == [5]
    assert newest[0]["positions"][4]["conditional"] is None


@pytest.mark.parametrize(
    ("launch", "proposed", "histogram", "depth"),
    [
        ({}, 39, [6, 0, 3, 4], 3),
        ({"num_steps": 5}, 39, [6, 0, 3, 4], 3),
        ({"num_steps": 3}, None, [6, 0, 3, 4], 3),
        ({}, None, [6, 0, 3, 4], None),
        ({"num_steps": 3}, 40, [6, 0, 3, 4], 3),
        ({}, 40, [6, 0, 3, 4], None),
        ({}, 26, [6, 0, 3, 4], None),
        ({"num_steps": 3, "eagle_topk": 4}, 91, [6, 0, 3, 4, 0, 0, 0, 0], 3),
        ({"eagle_topk": 4}, 91, [6, 0, 3, 4, 0, 0, 0, 0], None),
        ({"num_steps": 3, "adaptive": True}, 39, [6, 0, 3, 4], None),
    ],
)
def test_depth_is_known_only_where_no_cycle_can_have_another(
    launch: dict[str, object], proposed: int | None, histogram: list[int], depth: int | None
) -> None:
    said = SimpleNamespace(**{"num_steps": None, "eagle_topk": 1, "adaptive": None, **launch})
    assert depth_of(said, 13, proposed, histogram) == depth


def test_without_histograms_it_says_how_to_send_them(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, answer("a", spec_correct_drafts_histogram=None))
    found = web.api("/acceptance/positions", **WINDOW)
    assert (found["groups"], found["requests_without_histogram"]) == ([], 1)
    assert "POST /api/v1/requests" in found["note"]
    assert "specscope import requests" in found["note"]
    post(web, answer("b"))
    assert web.api("/acceptance/positions", **WINDOW)["note"].startswith("Left out")


def test_the_page_shows_the_charts_only_when_there_are_histograms(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(3, running=1)
    path = f"/acceptance?server={SERVER}&from={T0}&to={NOW}"
    before = web.get(path).text
    assert 'name="positions"' not in before
    assert 'data-hint="requests"' in before
    post(web, answer())
    after = web.get(path).text
    assert after.count('name="positions"') == 1
    assert 'name="request-lengths"' in after
    assert 'data-hint="requests"' not in after
    assert web.get(f"/acceptance?server={SERVER}&from=x").status_code == 422


@pytest.fixture
def data(web: Web, feed: Feed) -> AcceptancePositions:
    """Two launches of different depth with real answers."""
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 600_000, speculative={"num_steps": 5, "num_draft_tokens": 6})
    post(web, [*captured(T0 + 60_000), answer("y", T0 + 700_000, spec_num_proposed_drafts=65)])
    return AcceptancePositions.model_validate(web.api("/acceptance/positions", **WINDOW))


def test_figures_are_valid_and_show_what_the_answer_says(data: AcceptancePositions) -> None:
    for theme in (LIGHT, DARK):
        drawn = positions_figure(data, theme)
        assert len(go.Figure(drawn).data) == 4
        assert decode_floats(drawn["data"][0]["y"]) == [p.survival for p in data.groups[0].positions]
        assert drawn["data"][2]["marker"]["symbol"] == ["square-open"] * 5
        assert len({trace["line"]["dash"] for trace in drawn["data"]}) == 4
        bars = request_lengths_figure(data, theme)
        assert [sum(decode_floats(trace["y"])) for trace in go.Figure(bars) and bars["data"]] == [20, 1]
        assert "Pooled over cycles" in bars["layout"]["meta"]["definition"]


def test_only_the_newest_groups_are_drawn_and_it_says_so(data: AcceptancePositions) -> None:
    many = data.model_copy(update={"groups": data.groups * 3})
    drawn = positions_figure(many, LIGHT)
    assert len(drawn["data"]) == 8
    assert "2 older launches or depths are not drawn" in drawn["layout"]["meta"]["definition"]
    empty = data.model_copy(update={"groups": [], "note": "send them", "is_demo": True})
    assert "send them" in positions_figure(empty, LIGHT)["layout"]["meta"]["definition"]
    assert go.Figure(request_lengths_figure(empty, LIGHT)).data == ()


def test_csv_names_what_runs_along_x(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, answer())
    query = {"server": SERVER, "from": str(T0), "to": str(NOW), "format": "csv"}
    rows = web.get("/api/v1/figures/positions", params=query).text.splitlines()
    assert rows[0] == "line,position,value"
    assert rows[1].startswith("survival Sₖ,1,0.538")
    table = web.get("/api/v1/acceptance/positions", params=query).text.splitlines()
    assert table[0].startswith("launch_id,num_steps,position,offered,accepted,survival")
    assert len(table) == 4
