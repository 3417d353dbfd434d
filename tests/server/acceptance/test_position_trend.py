"""Acceptance by draft position over time: exact counts by bucket, gaps, launches, evidence, heat maps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session
from tests.server.client import Web
from tests.server.requests.answers import answer, captured, post
from tests.server.requests.test_summary import told
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.acceptance import position_counts
from specscope_server.acceptance.heatmap_figures import conditional_heatmap, survival_heatmap
from specscope_server.acceptance.position_counts import PositionGrid, best_counts, grid_of
from specscope_server.acceptance.position_trend_schemas import PositionTrend
from specscope_server.kit.figures import decode_floats
from specscope_server.kit.figures_theme import DARK, LIGHT
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}
MINUTE = 60_000


def test_each_bucket_holds_its_own_requests_and_a_gap_holds_none(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, [answer("a", T0 + MINUTE), answer("b", T0 + MINUTE + 1), answer("c", T0 + 10 * MINUTE)])
    found = web.api("/acceptance/positions/trend", step="1m", **WINDOW)
    assert (len(found["times"]), found["positions"], found["step_seconds"]) == (60, 3, 60)
    cells = {(cell["time"][14:16], cell["position"]): cell for cell in found["cells"]}
    assert set(cells) == {(minute, k) for minute in ("01", "10") for k in (1, 2, 3)}
    assert [cells["01", k]["accepted"] for k in (1, 2, 3)] == [14, 14, 8]
    assert [cells["01", k]["offered"] for k in (1, 2, 3)] == [26, 14, 14]
    assert cells["10", 3]["survival"] == pytest.approx(4 / 13)
    assert cells["10", 3]["conditional"] == pytest.approx(4 / 7)
    assert all(cell["is_few"] for cell in found["cells"])


def test_buckets_add_up_to_the_positions_of_the_whole_range(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, [*captured(T0 + 5 * MINUTE), answer("late", T0 + 50 * MINUTE)])
    [group] = web.api("/acceptance/positions", **WINDOW)["groups"]
    cells = web.api("/acceptance/positions/trend", **WINDOW)["cells"]
    for point in group["positions"]:
        mine = [cell for cell in cells if cell["position"] == point["position"]]
        assert sum(cell["accepted"] for cell in mine) == point["accepted"]
        assert sum(cell["offered"] for cell in mine) == point["offered"]


def test_positions_that_a_launch_never_proposed_stay_empty(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 30 * MINUTE, speculative={"num_steps": 5, "num_draft_tokens": 6})
    post(web, [told("x", [9, 9, 9, 9], T0 + MINUTE), told("y", [9, 9, 9, 9, 9, 9], T0 + 40 * MINUTE)])
    found = web.api("/acceptance/positions/trend", step="30m", **WINDOW)
    assert [(cell["time"][14:16], cell["position"]) for cell in found["cells"]] == [
        ("00", 1), ("00", 2), ("00", 3), ("30", 1), ("30", 2), ("30", 3), ("30", 4), ("30", 5),
    ]  # fmt: skip
    assert [launch["num_steps"] for launch in found["launches"]] == [3, 5]
    newest = web.api("/acceptance/positions/trend", launch="newest", **WINDOW)
    assert {cell["cycles"] for cell in newest["cells"]} == {54}


def test_adaptive_requests_are_left_out_and_it_says_so(web: Web, feed: Feed) -> None:
    feed.launch(speculative={"adaptive": True})
    post(web, [answer("a")])
    found = web.api("/acceptance/positions/trend", **WINDOW)
    assert (found["cells"], "K may have varied" in found["note"]) == ([], True)


def test_without_histograms_it_says_how_to_get_them(web: Web, feed: Feed) -> None:
    feed.launch()
    found = web.api("/acceptance/positions/trend", **WINDOW)
    assert (found["cells"], found["evidence"]) == ([], "")
    assert "POST /api/v1/requests" in found["note"]
    for theme in (LIGHT, DARK):
        assert go.Figure(survival_heatmap(PositionTrend.model_validate(found), theme))


def test_each_launch_takes_its_first_evidence_that_has_something(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 30 * MINUTE)
    post(web, [answer("a"), answer("b", T0 + 40 * MINUTE)])

    def silent(*_: object) -> None:
        return None

    with Session(web.app.state.specscope.engine) as session:
        launches = {item.id: item for item in session.query(Launch)}
        newest = max(launches)
        window = Window(T0, NOW, NOW - T0)

        def counters(
            session: Session, server_id: int, launches: Mapping[int, Launch], window: Window
        ) -> PositionGrid:
            return grid_of([0], [[1, 2, 3]], window.buckets, "counters", ("late",), frozenset({newest}))

        server_id = launches[newest].server_id
        sources = (silent, counters, position_counts.of_requests)
        found = best_counts(session, server_id, launches, window, sources)
        assert found is not None
        assert found.evidence == "counters; histograms of finished requests"
        assert found.accepted.tolist() == [[5 + 7, 3 + 7, 4]]  # the newest from counters, the other from h
        assert (found.notes, found.covers) == (("late",), frozenset(launches))
        assert best_counts(session, server_id, launches, window, (silent,)) is None


HISTOGRAMS = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=6), max_size=12)


@given(HISTOGRAMS, st.data())
def test_counts_fall_with_the_position_and_add_up_over_buckets(
    rows: list[list[int]], data: st.DataObject
) -> None:
    places = [data.draw(st.integers(0, 3)) for _ in rows]
    grid = grid_of(places, rows, 4, "x")
    together = grid_of([0] * len(rows), rows, 1, "x")
    for name in ("cycles", "offered", "accepted"):
        assert (getattr(grid, name).sum(axis=0) == getattr(together, name)[0]).all()
    assert (grid.cycles >= grid.offered).all()
    assert (grid.offered >= grid.accepted).all()
    drafts = sum(d * n for row in rows for d, n in enumerate(row))
    assert together.accepted.sum() == drafts


def test_heat_maps_show_what_the_answer_says_and_grey_what_is_few(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="<b>0.5</b>")
    post(web, [told("many", [100, 100, 100, 3], T0 + MINUTE), answer("few", T0 + 30 * MINUTE)])
    data = PositionTrend.model_validate(web.api("/acceptance/positions/trend", step="10m", **WINDOW))
    for theme in (LIGHT, DARK):
        for draw in (survival_heatmap, conditional_heatmap):
            figure = draw(data, theme)
            assert len(go.Figure(figure).data) == 2
            assert "<b>" not in str(figure["layout"]["annotations"])
    few, sure = survival_heatmap(data, LIGHT)["data"]
    z = np.array(decode_floats(sure["z"])).reshape(3, 6)
    assert z[:, 0].tolist() == pytest.approx([203 / 303, 103 / 303, 3 / 303])
    assert np.isnan(z[:, 1:]).all()
    assert sure["text"][2][0] == "3 of 303 cycles"
    assert np.isfinite(np.array(decode_floats(few["z"])).reshape(3, 6)[:, 3]).all()
    pale, known = conditional_heatmap(data, LIGHT)["data"]
    assert np.isfinite(np.array(decode_floats(known["z"])).reshape(3, 6)[:, 0]).tolist() == [
        True,
        True,
        False,
    ]
    assert np.array(decode_floats(pale["z"])).reshape(3, 6)[2, 0] == pytest.approx(3 / 103)
    demo = survival_heatmap(replace_demo(data), LIGHT)
    assert any(note.get("name") == "watermark" for note in demo["layout"]["annotations"])


def replace_demo(data: PositionTrend) -> PositionTrend:
    """Return the same data as of a demo."""
    return data.model_copy(update={"is_demo": True})


def test_csv_has_a_row_for_each_cell(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, [answer("a", T0 + MINUTE)])
    query = f"server={SERVER}&from={T0}&to={T0 + 5 * MINUTE}&step=1m&format=csv"
    rows = web.get(f"/api/v1/figures/positions-survival-over-time?{query}").text.splitlines()
    assert rows[0] == "line,time,position,value"
    assert len(rows) == 4
    table = web.get(f"/api/v1/acceptance/positions/trend?{query}")
    assert table.text.startswith("time,position,cycles,offered,accepted")
    assert "etag" in table.headers


def test_of_very_many_requests_about_one_in_n_is_read(
    web: Web, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.launch()
    post(web, [answer(f"r{n}", T0 + n * 1_000) for n in range(100)])
    monkeypatch.setattr(position_counts, "MAX_REQUESTS", 30)
    found = web.api("/acceptance/positions/trend", step="10m", **WINDOW)
    assert found["note"] == "About one request in 4 was read, of 100."
    assert 23 <= found["cells"][0]["cycles"] / 13 <= 27
