"""Runs and their comparison through the API and on the page, from what a collector sends."""

from __future__ import annotations

import pytest
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed, request

from specscope_collectors.observations import CANARY_ID_PREFIX, CanaryLabel, HealthState, RequestRecord

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}
PROMPTS = 8


def asked(run_ms: int, prompt: int, cycles: int, accepted: int, output: str = "aa") -> RequestRecord:
    """Return a canary's record: all cycles accept one or two drafts."""
    name = f"p{prompt}"
    two = accepted - cycles
    return RequestRecord(
        request_id=f"{CANARY_ID_PREFIX}s1:{run_ms}:{name}", time_ms=run_ms + 100, completion_tokens=64,
        verify_calls=cycles, accepted_drafts=accepted, proposed_drafts=3 * cycles,
        accepted_histogram=(0, cycles - two, two, 0), e2e_seconds=0.5,
        labels={
            CanaryLabel.SET.value: "s1", CanaryLabel.RUN.value: str(run_ms), CanaryLabel.PROMPT.value: name,
            CanaryLabel.OUTPUT.value: output,
        },
    )  # fmt: skip


def run(run_ms: int, extra: int = 0, output: str = "aa") -> list[RequestRecord]:
    """Return a run whose prompts differ in τ; ``extra`` drafts are accepted beside."""
    return [asked(run_ms, index, 50, 60 + 4 * index + extra, output) for index in range(PROMPTS)]


@pytest.fixture
def two_launches(feed: Feed, web: Web) -> Web:
    """Two runs of a launch, then one of another that accepts fewer drafts with every prompt."""
    feed.launch("a1", T0)
    feed.send(*run(T0 + 60_000))
    feed.send(*run(T0 + 120_000))
    feed.launch("b2", T0 + 180_000)
    feed.send(*run(T0 + 240_000, extra=-5))
    return web


def test_runs_are_listed_newest_first_with_pooled_and_mean_lengths(two_launches: Web) -> None:
    runs = two_launches.api("/canary/runs", **WINDOW)["runs"]
    assert [each["run"] for each in runs] == [T0 + 240_000, T0 + 120_000, T0 + 60_000]
    assert runs[2]["accept_length"] == pytest.approx(1 + (60 + 14) / 50)
    assert runs[2]["request_mean_accept_length"] == pytest.approx(1 + (60 + 14) / 50)
    assert [each["outputs_changed"] for each in runs] == [0, 0, None]
    assert runs[0]["launch_id"] != runs[1]["launch_id"]


def test_launches_are_compared_prompt_by_prompt(two_launches: Web) -> None:
    found = two_launches.api("/canary/compare", **WINDOW)
    assert found["state"] == "bad"
    assert found["verdict"].startswith("The accept length fell by 4.")
    assert "8 of 8 prompts fell" in found["verdict"]
    assert (found["a"]["runs"], found["b"]["runs"]) == (2, 1)
    assert [pair["prompt"] for pair in found["pairs"]] == [f"p{index}" for index in range(PROMPTS)]
    assert found["pairs"][0]["a_cycles"] == 100
    assert found["outputs_changed"] == 0
    times = next(change for change in found["changes"] if change["name"] == "e2e_seconds")
    assert times["change"] == 0
    assert not times["is_shown"]


def test_two_runs_of_one_launch_are_compared_when_there_is_no_other(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0)
    feed.send(*run(T0 + 60_000))
    assert web.api("/canary/compare", **WINDOW)["verdict"].startswith("One run so far")
    feed.send(*run(T0 + 120_000, output="bb"))
    found = web.api("/canary/compare", **WINDOW)
    assert found["state"] == "ok"
    assert found["outputs_changed"] == PROMPTS
    assert web.api("/canary/runs", **WINDOW)["runs"][0]["outputs_changed"] == PROMPTS


def test_sides_can_be_chosen_and_bad_choices_are_problems(two_launches: Web) -> None:
    chosen = two_launches.api("/canary/compare", a=T0 + 60_000, b=T0 + 120_000, **WINDOW)
    assert chosen["state"] == "ok"
    base = f"/api/v1/canary/compare?server={SERVER}&from={T0}&to={NOW}"
    for query, status in (("a=x&b=1", 422), ("a=99&b=98", 404), (f"a={T0 + 60_000}", 422)):
        answer = two_launches.get(f"{base}&{query}")
        assert answer.status_code == status
        assert answer.json()["detail"]


def test_a_canary_is_not_taken_for_the_traffic(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0)
    feed.send(*run(T0 + 60_000), request(1, T0 + 61_000, (10, 0, 0, 0)))
    [group] = web.api("/acceptance/positions", **WINDOW)["groups"]
    assert (group["requests"], group["cycles"], group["accepted_drafts"]) == (1, 10, 0)


def test_a_request_that_pretends_to_be_a_canarys_is_left_out(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0)
    forged = RequestRecord(
        request_id=f"{CANARY_ID_PREFIX}x", time_ms=T0 + 1_000, verify_calls=5, accepted_drafts=5,
        labels={"canary_run": "-1; drop", "canary_set": "s1"},
    )  # fmt: skip
    feed.send(forged, *run(T0 + 60_000))
    assert len(web.api("/canary/runs", **WINDOW)["runs"]) == 1


def test_the_page_says_what_was_found_and_how_to_begin(two_launches: Web, lone_web: Web) -> None:
    page = two_launches.get(f"/canary?server={SERVER}&from={T0}&to={NOW}")
    assert page.status_code == 200
    assert "The accept length fell by" in page.text
    assert 'name="canary-pairs"' in page.text
    assert lone_web.get("/canary").status_code == 200


def test_a_server_without_a_canary_is_told_how_to_turn_it_on(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0)
    text = web.get(f"/canary?server={SERVER}").text
    assert "[[canary]]" in text
    assert "chart-panel" not in text


@pytest.mark.parametrize("name", ["canary-runs", "canary-pairs"])
def test_figures_are_what_plotly_takes(two_launches: Web, name: str) -> None:
    import plotly.graph_objects as go

    figure = two_launches.api(f"/figures/{name}", **WINDOW)
    go.Figure(data=figure["data"], layout=figure["layout"])
    assert figure["data"]


def test_a_canary_that_gets_no_answer_is_not_said_to_be_off(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0)
    assert "It is off until" in web.get(f"/canary?server={SERVER}").text
    feed.health(NOW, HealthState.HTTP_ERROR, source="canary", detail="24 of 24 prompts got no usable answer")
    text = web.get(f"/canary?server={SERVER}").text
    assert "24 of 24 prompts got no usable answer" in text
    assert "It is off until" not in text
