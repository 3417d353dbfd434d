"""Which series are the target's."""

from __future__ import annotations

import pytest

from specscope_server.kit.targets import of_target, target_names

SERVED = target_names("m", "org/m", "d/eagle3", "server_info")
TARGET = {"model_name": "m", "engine_type": "unified"}


@pytest.mark.parametrize(
    "other",
    [
        {"model_name": "d/eagle3", "engine_type": "unified"},
        {"model_name": "draft", "engine_type": "unified"},
        {"model_name": "m", "engine_type": "draft"},
    ],
)
def test_a_draft_engine_beside_the_target_is_left_out_and_named(other: dict[str, str]) -> None:
    found = of_target([("draft", other), ("target", TARGET), ("bare", {})], SERVED)
    assert found.kept == ["target", "bare"]
    assert "left out" in found.note
    assert (other["model_name"] if other["model_name"] != "m" else "a draft engine") in found.note


def test_the_model_path_is_a_name_of_the_target_too() -> None:
    assert of_target([(1, {"model_name": "org/m"}), (2, TARGET)], SERVED).kept == [1, 2]


def test_all_is_kept_with_a_note_when_nothing_carries_the_name() -> None:
    found = of_target([(1, {"model_name": "a"}), (2, {"model_name": "b"}), (3, {})], SERVED)
    assert found.kept == [1, 2, 3]
    assert "no series carries the launch's model 'm', 'org/m'; 'a', 'b' is used" in found.note


def test_a_known_draft_is_left_out_even_then() -> None:
    assert of_target([(1, {"model_name": "a"}), (2, {"model_name": "d/eagle3"})], SERVED).kept == [1]


def test_only_a_draft_engine_is_better_than_nothing_and_said() -> None:
    found = of_target([(1, {"model_name": "m", "engine_type": "draft"})], SERVED)
    assert (found.kept, found.note) == ([1], "only series of a draft engine were read")


def test_a_name_guessed_from_the_metrics_excludes_nothing() -> None:
    names = target_names("a", None, None, "metric_names")
    found = of_target([(1, {"model_name": "a"}), (2, {"model_name": "b"})], names)
    assert found.kept == [1, 2]
    assert "does not say which model it serves" in found.note
    assert of_target([(1, {"model_name": "a"})], names).note == ""


def test_no_names_and_nothing_to_say() -> None:
    assert of_target([(1, {}), (2, {})], SERVED) == of_target([(1, {}), (2, {})], target_names(*[None] * 4))
    assert of_target([], SERVED).note == ""


def test_a_draft_that_is_named_as_its_target_hides_nothing() -> None:
    chosen = of_target([("a", {"model_name": "m"})], target_names("m", "m", "m", "server_info"))
    assert (chosen.kept, chosen.note) == (["a"], "")
