"""The boundary table through the API: the story, the upgrade, a default, a lost slot, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import NOW, T0, Feed

from specscope_collectors.observations import Event, LnNorms, StateProfile
from specscope_collectors.references.document import Reference, packed
from specscope_server.boundaries import examples
from specscope_server.boundaries.schemas import BoundaryTable

PROFILE = StateProfile(
    time_ms=NOW - 60_000, span_ms=1, labels={}, phase="prefill", row_class="other", slot=0, hidden_size=8,
    rows=1, requests=1, ln_norms=LnNorms(sum=1.0, sum_of_squares=1.0, minimum=1.0, maximum=1.0, bins={50: 1}),
)  # fmt: skip
DEEPSEEK = "DeepseekV3ForCausalLM"
PATH = "/drift/boundaries"


def configured(
    ids: list[int] | None, model_class: str | None = DEEPSEEK, layers: int | None = 61, **more: Any
) -> dict[str, Any]:
    model = {"architectures": [model_class] if model_class else [], "num_hidden_layers": layers}
    draft = {"architectures": ["LlamaForCausalLMEagle3"]} | (
        {"eagle_aux_hidden_state_layer_ids": ids, "source": "/models/draft/config.json"} if ids else {}
    )
    return {"specscope_model": model, "specscope_draft": draft, **more}


def launch(feed: Feed, key: str, version: str, config: dict[str, Any], minutes: int = 0) -> None:
    feed.launch(
        key, T0 + minutes * 60_000, engine_version=version, config=config, model="org/Target",
        speculative={"algorithm": "EAGLE3"},
    )  # fmt: skip


def capture(feed: Feed, layers: list[int] | None, time_ms: int = T0 + 1_000, **more: Any) -> None:
    boundaries = sorted(set(layers)) if layers is not None else None
    detail = {
        "capture": {
            "layers": layers, "boundaries": boundaries, "rule": "layer i hands out its input",
            "hidden_size": 8, "width": 24, "draft_layers": None, "is_calibration": False, **more,
        },
        "model_class": DEEPSEEK, "engine_version": "0.5.8",
    }  # fmt: skip
    feed.send(Event(kind="state_capture", time_ms=time_ms, message="m", detail=detail))


def upload(web: Web, *boundaries: int | None, model: str = "org/Target", name: str = "synth") -> int:
    reference = Reference(
        name=name, made_ms=NOW - 60_000, tool="speculators 0.4.0", container="torch", compression="none",
        model=model, dtype="bfloat16", hidden_size=8, boundaries=boundaries, files=1, requests=1, tokens=1,
        boundary_rule="b = X + 1 (what layer X puts out)", boundary_source="data_config.json",
        rows=1, budget_rows=64, seed=1, fingerprint="f", sink_limits=(None,) * len(boundaries),
        token_ids=(), profiles=(PROFILE,), provenance={"layer_ids": "2,30,58"},
    )  # fmt: skip
    answer = web.request(
        "POST", "/api/v1/references", content=packed(reference), headers={"content-type": "application/gzip"}
    )
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def rows(found: Any) -> dict[str, Any]:
    return {row["role"]: row for row in found["rows"]}


def kinds(found: Any) -> list[str]:
    return [each["kind"] for each in found["disagreements"]]


def test_the_story_is_named_without_a_probe(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([-1, 2, 30]))
    upload(web, 3, 31, 59)
    found = web.api(PATH, server="gpu1:30000")
    assert rows(found)["trained"]["boundaries"] == [3, 31, 59]
    assert rows(found)["trained"]["ids"] == [2, 30, 58]
    assert rows(found)["asked"]["boundaries"] == [0, 3, 31]
    assert rows(found)["asked"]["ids"] == [-1, 2, 30]
    assert "/models/draft/config.json" in rows(found)["asked"]["source"]
    assert found["verdict"]["state"] == "bad"
    message = found["verdict"]["reasons"][0]
    assert "trained on [3, 31, 59]" in message
    assert "slot 0 is the embedding, and each other slot holds the one before it" in message
    assert any("SPECSCOPE_PROBE=1" in each for each in found["missing"])


def test_after_the_fix_they_agree_and_the_next_upgrade_is_told_beforehand(
    both_web: Web, both_feed: Feed
) -> None:
    web, feed = both_web, both_feed
    launch(feed, "a", "0.5.8", configured([-1, 2, 30]))
    launch(feed, "b", "0.5.8", configured([2, 30, 58]), minutes=5)
    upload(web, 3, 31, 59)
    capture(feed, [3, 31, 59], T0 + 400_000)
    found = web.api(PATH, server="gpu1:30000")
    assert found["verdict"]["state"] == "ok"
    assert found["verdict"]["headline"] == "Layer ids agree: [3, 31, 59]"
    assert rows(found)["previous"]["ids"] == [-1, 2, 30]
    assert rows(found)["captured"]["ids"] == [3, 31, 59]
    assert kinds(found) == ["next_upgrade"]
    assert (
        "[2, 30, 58] means [3, 31, 59] in 0.5.8 and [2, 30, 58] in 0.5.23" in found["verdict"]["reasons"][0]
    )


def test_an_upgrade_that_shifted_the_draft_by_one(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([2, 30, 58]))
    launch(feed, "b", "0.5.15", configured([2, 30, 58]), minutes=5)
    found = web.api(PATH, server="gpu1:30000")
    [fault] = found["disagreements"]
    assert fault["is_fault"]
    assert fault["message"] == (
        "[2, 30, 58] means [3, 31, 59] in 0.5.8 and [2, 30, 58] in 0.5.15 for DeepseekV3ForCausalLM: this "
        "upgrade moved what your draft sees (every slot is one boundary shallower)."
    )
    earlier = web.api(PATH, server="gpu1:30000", launch="1")
    assert "upgrade" not in kinds(earlier)


def test_a_launch_that_changed_nothing_hides_no_earlier_difference(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([-1, 2, 30]))
    launch(feed, "b", "0.5.8", configured([2, 30, 58]), minutes=5)
    launch(feed, "c", "0.5.8", configured([2, 30, 58]), minutes=10)
    assert rows(web.api(PATH, server="gpu1:30000"))["previous"]["launch_id"] == 1


def test_the_model_captures_other_layers_than_the_rule_says(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([2, 30, 58]))
    capture(feed, [2, 30, 58])
    found = web.api(PATH, server="gpu1:30000")
    assert kinds(found)[0] == "asked_captured"
    assert "every slot is one boundary shallower" in found["disagreements"][0]["message"]


def test_a_newer_capture_counts_and_a_calibration_does_not(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured(None, layers=None, model_class=None))
    capture(feed, [2, 30, 58], T0 + 1_000)
    capture(feed, [3, 31, 59], T0 + 2_000)
    capture(feed, list(range(62)), T0 + 3_000, is_calibration=True)
    found = web.api(PATH, server="gpu1:30000")
    assert rows(found)["captured"]["boundaries"] == [3, 31, 59]
    assert found["model_class"] == DEEPSEEK  # the probe told it


def test_graphs_of_old_versions_hold_default_layers(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([2, 30, 58], disable_cuda_graph=False))
    found = web.api(PATH, server="gpu1:30000")
    assert rows(found)["graphs"]["boundaries"] == [2, 30, 58]
    assert "verification sees the default layers ([2, 30, 58]), prefill [3, 31, 59]" in str(
        found["disagreements"]
    )
    launch(feed, "b", "0.5.8", configured([2, 30, 58], disable_cuda_graph=True), minutes=5)
    assert "graphs" not in rows(web.api(PATH, server="gpu1:30000"))


def test_ids_that_no_layer_meets_cost_a_slot(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.23", configured([-1, 2, 30]))
    found = web.api(PATH, server="gpu1:30000")
    assert rows(found)["asked"]["boundaries"] == [2, 30]
    assert kinds(found) == ["lost"]


def test_the_embedding_as_a_slot_is_told_even_without_a_reference(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([-1, 2, 30]))
    capture(feed, [0, 3, 31])
    found = web.api(PATH, server="gpu1:30000")
    assert found["verdict"]["headline"] == "The model captures what the draft asks for: [0, 3, 31]"
    assert "embedding" in kinds(found)
    upload(web, 0, 3, 31)
    assert "embedding" not in kinds(web.api(PATH, server="gpu1:30000"))


def test_what_is_not_known_is_said(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.15", {})
    found = web.api(PATH, server="gpu1:30000")
    asked = rows(found)["asked"]
    assert (asked["ids"], asked["boundaries"]) == (None, None)
    assert "does not show" in asked["reason"]
    assert found["verdict"]["state"] == "unknown"
    assert len(found["missing"]) >= 3


def test_a_draft_without_ids_is_a_guess(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.15", configured(None))
    asked = rows(web.api(PATH, server="gpu1:30000"))["asked"]
    assert asked["is_default"]
    assert asked["boundaries"] == [2, 30, 58]


def test_without_speculation_nothing_is_asked_for(web: Web, feed: Feed) -> None:
    feed.launch("a", config={}, speculative={"algorithm": None, "draft_model": None})
    assert web.api(PATH, server="gpu1:30000")["rows"] == []


@pytest.mark.parametrize(
    ("query", "boundaries"),
    [
        ({"ids": "2,30,58", "engine_version": "0.5.8"}, [3, 31, 59]),
        ({"ids": "[2, 30, 58]", "engine_version": "0.5.23"}, [2, 30, 58]),
        ({"ids": "-1,2,30", "engine_version": "0.5.8"}, [0, 3, 31]),
        ({"ids": "2,30,58", "engine_version": "0.5.10"}, None),
    ],
    ids=["0.5.8", "0.5.23", "embedding", "between"],
)
def test_a_question_needs_no_server(lone_web: Web, query: dict[str, str], boundaries: object) -> None:
    found = lone_web.api(PATH, model_class=DEEPSEEK, layers=61, **query)
    [row] = found["rows"]
    assert (row["role"], row["boundaries"]) == ("what_if", boundaries)


def test_a_question_about_a_server_keeps_what_is_recorded(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([2, 30, 58]))
    upload(web, 3, 31, 59)
    found = web.api(PATH, server="gpu1:30000", engine_version="0.5.23")
    assert rows(found)["what_if"]["boundaries"] == [2, 30, 58]
    assert "every slot is one boundary shallower" in str(found["disagreements"])


def test_a_reference_fits_by_model_or_is_asked_for(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([2, 30, 58]))
    other = upload(web, 9, 10, 11, model="another/Model", name="other")
    assert "trained" not in rows(web.api(PATH, server="gpu1:30000"))
    assert rows(web.api(PATH, server="gpu1:30000", reference=other))["trained"]["boundaries"] == [9, 10, 11]
    upload(web, None, None, None, name="silent")
    trained = rows(web.api(PATH, server="gpu1:30000"))["trained"]
    assert trained["boundaries"] is None
    assert "--boundaries" in trained["reason"]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({}, 422, "server is missing"),
        ({"ids": "2;30"}, 422, "is no list of layer ids"),
        ({"ids": "2,30", "system": "nobody"}, 422, "system"),
        ({"server": "nobody"}, 404, "no server"),
        ({"ids": "2", "reference": "99"}, 404, "no reference 99"),
        ({"ids": "2", "layers": "0"}, 422, "layers"),
    ],
    ids=["nothing", "ids", "system", "server", "reference", "layers"],
)
def test_bad_questions_are_refused(lone_web: Web, query: dict[str, str], status: int, words: str) -> None:
    answer = lone_web.get(f"/api/v1{PATH}", params=query)
    assert answer.status_code == status
    assert words in answer.text


def test_hostile_configurations_are_nothing(web: Web, feed: Feed) -> None:
    hostile = {
        "specscope_model": {"architectures": [{"a": 1}], "num_hidden_layers": "61"},
        "specscope_draft": {"eagle_aux_hidden_state_layer_ids": [10**9, "x"], "eagle_config": [1]},
    }
    launch(feed, "a", "<script>0.5.8", hostile)
    found = web.api(PATH, server="gpu1:30000")
    assert found["model_class"] is None
    assert found["layers"] is None


def test_the_table_as_csv(web: Web, feed: Feed) -> None:
    launch(feed, "a", "0.5.8", configured([2, 30, 58]))
    text = web.get(f"/api/v1{PATH}", params={"server": "gpu1:30000", "format": "csv"}).text
    assert text.startswith("role,title,source")
    assert "asked" in text


def test_examples_are_of_the_schema() -> None:
    assert BoundaryTable.model_validate(examples.TABLE).model_dump(mode="json") == examples.TABLE
