"""Drift over REST on every store: answers, tables, trend, inspector, references asked for, refusals."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.client import Web
from tests.server.drift.conftest import PHASES, TRAINED, WINDOW_MS, Served
from tests.server.seed import NOW, SERVER, T0, level
from tests.support.synthetic_states import Target, reference_of

from specscope_collectors.observations import Event
from specscope_server.drift import examples
from specscope_server.drift.schemas import Drift, DriftProfiles, DriftTrend

Ask = Callable[..., Any]


def test_examples_are_what_would_be_answered() -> None:
    for model, example in (
        (Drift, examples.DRIFT), (DriftTrend, examples.TREND), (DriftProfiles, examples.PROFILES),
    ):  # fmt: skip
        assert model.model_validate(example).model_dump(mode="json", by_alias=True) == example


def test_the_verdict_and_its_table(known: Served, web: Web, ask: Ask) -> None:
    known.windows([3, 7, 10], 2, told=TRAINED, phases=PHASES)
    found = ask()
    Drift.model_validate(found)
    assert found["verdict"]["headline"].startswith("All slots are one layer too deep")
    assert (found["reference"]["kind"], found["boundaries_reference"]["kind"]) == ("slots", "boundaries")
    assert found["boundaries_reference"]["boundaries"] == list(range(13))
    curve = [point for point in found["curve"] if (point["slot"], point["phase"]) == (1, "prefill")]
    assert min(curve, key=lambda point: point["vcos"])["boundary"] == 7
    assert min(curve, key=lambda point: point["dnll"])["boundary"] == 7
    assert [point["boundary"] for point in curve if point["is_trained"]] == [6]
    table = web.get("/api/v1/drift", params={"server": SERVER, "from": "now-2h", "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [(row["slot"], row["phase"], row["state"]) for row in rows][:2] == [
        ("0", "prefill", "wrong"), ("0", "verify_accepted", "wrong"),
    ]  # fmt: skip
    assert len(rows) == 9


def test_the_trend_holds_windows_of_all_launches_and_their_acceptance(known: Served, ask: Ask) -> None:
    known.windows(count=3)
    known.launch("b2", T0 + 3 * WINDOW_MS)
    known.windows([3, 7, 10], 2, told=TRAINED, start_ms=T0 + 3 * WINDOW_MS)
    known.feed.launch_key = "a1"
    known.feed.scrapes(360, tau=2.2, running=2.0)
    known.feed.launch_key = "b2"
    known.feed.scrapes(300, T0 + 3 * WINDOW_MS, tau=1.2, running=2.0)
    found = ask("/trend")
    DriftTrend.model_validate(found)
    own = [point for point in found["points"] if (point["slot"], point["phase"]) == (0, "prefill")]
    assert [point["launch_id"] for point in own] == [1, 1, 1, 2, 2]
    assert [point["nearest"] for point in own] == [2, 2, 2, 3, 3]
    assert [point["state"] for point in own] == ["same"] * 3 + ["suspected"] * 2
    assert [point["accept_length"] for point in own] == pytest.approx([2.2] * 3 + [1.2] * 2, abs=0.02)
    assert own[0]["claimed_excess"] == 0
    assert own[-1]["claimed_excess"] > 0.02
    assert own[0]["q05"] < own[0]["q50"] < own[0]["q95"]
    assert [launch["launch_id"] for launch in found["launches"]] == [1, 2]
    assert found["is_thinned"] is False


def test_noise_floors_are_of_neighbouring_windows_of_a_launch(known: Served, ask: Ask) -> None:
    known.windows(count=5, phases=PHASES[:1])
    assert {floor["value"] for floor in ask("/trend")["floors"]} == {None}
    known.windows(count=1, phases=PHASES[:1], start_ms=T0 + 5 * WINDOW_MS)
    floors = ask("/trend")["floors"]
    assert {floor["pairs"] for floor in floors} == {5}
    w1 = next(floor["value"] for floor in floors if floor["statistic"] == "w1")
    assert 0 < w1 < 0.1


def test_the_inspector_shows_profiles_rows_and_capture(known: Served, ask: Ask) -> None:
    known.windows(count=1)
    row = {"phase": "prefill", "slot": 0, "position": 7, "norm": 84.2, "first_values": [0.5, None]}
    rows = {"rank": {}, "sink_limits": [], "rows": [row, {"phase": "<b>", "unknown": 1}, 7]}
    capture = {"capture": {"boundaries": [2, 6, 9]}, "model_class": "Llama"}
    known.feed.send(
        Event(kind="state_rows", time_ms=T0 + 60_000, message="rows", detail=rows),
        Event(kind="state_capture", time_ms=T0 + 60_000, message="capture", detail=capture),
    )
    found = ask("/profiles")
    DriftProfiles.model_validate(found)
    serving = [each for each in found["profiles"] if each["side"] == "serving"]
    assert [(each["slot"], each["phase"]) for each in serving][:2] == [(0, "prefill"), (0, "verify_accepted")]
    assert serving[0]["quantiles"]["q01"] < serving[0]["mean_ln_norm"] < serving[0]["quantiles"]["q99"]
    assert 0 < serving[0]["mean_resultant"] < 1
    assert len(serving[0]["top_channels"]) == 4
    assert sum(each["side"] == "training" for each in found["profiles"]) == 4
    assert sum(each["side"] == "boundaries" for each in found["profiles"]) == 13
    assert [each["first_values"] for each in found["rows"]] == [[0.5, None]]
    assert found["capture"]["model_class"] == "Llama"


def test_references_can_be_asked_for(known: Served, web: Web, target: Target, ask: Ask) -> None:
    other = known.reference(reference_of(target, (3, 7, 10), name="deeper"))
    known.windows([3, 7, 10])
    assert ask(reference=other)["verdict"]["state"] == "ok"
    assert ask(reference=1)["verdict"]["state"] == "bad"
    wrong = web.get("/api/v1/drift", params={"server": SERVER, "reference": 2})
    assert wrong.status_code == 422
    assert "is not one of a training dump" in wrong.json()["detail"]
    wrong = web.get("/api/v1/drift", params={"server": SERVER, "boundaries": 1})
    assert (wrong.status_code, "of all boundaries" in wrong.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    "query", [{"server": "none"}, {"server": SERVER, "launch": "77"}, {"server": SERVER, "reference": "99"}]
)
@pytest.mark.parametrize("path", ["", "/trend", "/profiles"])
def test_what_is_not_there_is_not_found(served: Served, web: Web, path: str, query: dict[str, str]) -> None:
    assert web.get(f"/api/v1/drift{path}", params=query).status_code == 404


def test_profiles_of_a_calibration_are_no_serving(known: Served, ask: Ask) -> None:
    known.windows(count=1, phases=("calibration",))
    assert ask()["cells"] == []


def test_ranks_that_hold_other_states_are_found(known: Served, ask: Ask) -> None:
    known.windows()
    time_ms = NOW - 60_000
    for rank, norm in ((0, 4.0), (1, 3.2)):
        norms = level("spec.num_steps", norm, time_ms, tp=rank)
        sample = level("spec.num_steps", 16.0, time_ms, tp=rank)
        slot = {**norms.labels, "slot": "1"}
        known.feed.send(
            type(norms)(metric="states.check_ln_norm", labels=slot, time_ms=time_ms, value=norm),
            type(norms)(metric="states.check_sample", labels=sample.labels, time_ms=time_ms, value=16.0),
        )
    [finding] = [each for each in ask()["findings"] if each["kind"] == "ranks"]
    assert (finding["passed"], finding["looked_at"]) == (False, 1)
    assert ask()["verdict"]["state"] == "bad"


def test_a_long_range_is_looked_at_in_many_places(
    known: Served, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specscope_server.drift.reading.MOST_ENTRIES", 10)
    monkeypatch.setattr("specscope_server.drift.trend.MOST_ENTRIES", 10)
    known.windows(count=6)
    found = ask("/trend")
    assert found["is_thinned"] is True
    assert len({point["time"] for point in found["points"]}) == 6


def test_simulated_data_is_labelled(served: Served, ask: Ask) -> None:
    served.launch("demo", is_demo=True)
    served.windows(count=1)
    assert ask()["is_demo"] is True
    assert ask("/trend")["is_demo"] is True
