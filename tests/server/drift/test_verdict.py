"""The verdict names the fault that is there, and says what is missing where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from sqlalchemy import Engine
from tests.server.drift.conftest import PHASES, TRAINED, WINDOW_MS, Served
from tests.server.seed import T0
from tests.support.synthetic_states import (
    MODEL,
    Floats,
    Target,
    post_norm,
    profile_of,
    quantised,
    reference_of,
    rotated,
)

from specscope_collectors.references.document import LastState, Reference


@pytest.fixture
def store_engine(sqlite_engine: Engine) -> Engine:
    """What is said does not depend on the store; how it is read is tested on all of them elsewhere."""
    return sqlite_engine


Ask = Callable[..., Any]


def states_of(found: Any) -> list[str]:
    return [slot["state"] for slot in found["slots"]]


def faults_of(found: Any) -> list[str]:
    return [slot["fault"] for slot in found["slots"]]


def measured_of(found: Any) -> list[int | None]:
    return [slot["measured_boundary"] for slot in found["slots"]]


def test_states_as_trained_are_the_same(known: Served, ask: Ask) -> None:
    known.windows()
    found = ask()
    assert found["verdict"]["state"] == "ok"
    assert found["verdict"]["headline"] == "The draft sees what it was trained on: boundaries 2, 6 and 9"
    assert states_of(found) == ["same"] * 3
    assert found["resolution"] == "boundaries"
    cell = found["cells"][0]
    assert (cell["slot"], cell["phase"], cell["votes_for"], cell["votes"]) == (0, "prefill", 3, 3)
    assert (cell["vcos"]["boundary"], cell["dnll"]["boundary"]) == (2, 2)
    assert cell["rows"] == 256
    assert cell["requests"] == 32
    assert 8 <= cell["common_rows"] <= 256
    assert found["missing"] == []


@pytest.mark.parametrize(("shift", "words"), [(1, "one layer too deep"), (-1, "one layer too shallow")])
def test_off_by_one_is_named_in_every_slot(known: Served, ask: Ask, shift: int, words: str) -> None:
    known.windows([boundary + shift for boundary in TRAINED], told=TRAINED)
    found = ask()
    assert found["verdict"]["state"] == "bad"
    assert words in found["verdict"]["headline"]
    assert faults_of(found) == ["wrong_boundary"] * 3
    assert measured_of(found) == [boundary + shift for boundary in TRAINED]
    evidence = found["slots"][0]["evidence"]
    assert evidence[0] == f"the engine says that it captures boundary 2, and hands on boundary {2 + shift}"


def test_an_off_by_one_is_named_under_another_domain_of_text(known: Served, ask: Ask) -> None:
    known.windows([3, 7, 10], shift=1.0)
    assert measured_of(ask()) == [3, 7, 10]


def test_another_domain_of_text_is_no_fault(known: Served, ask: Ask) -> None:
    known.windows(shift=1.0)
    found = ask()
    assert found["verdict"]["state"] == "ok"
    far = ask("/trend")["points"]
    known.windows(start_ms=T0 + 3 * WINDOW_MS, count=2)
    near = ask("/trend")["points"][-1:]
    assert min(point["vcos"] for point in far) > 1.3 * near[0]["vcos"], "the text is another one indeed"


def test_embedding_shift_is_told_as_the_story_tells_it(known: Served, ask: Ask) -> None:
    known.windows((0, 2, 6), 5)
    found = ask()
    assert found["verdict"]["headline"] == (
        "The slots are boundaries 0, 2 and 6, trained on 2, 6 and 9: slot 0 is the embedding"
    )
    assert faults_of(found) == ["embedding", "wrong_boundary", "wrong_boundary"]
    assignment = found["assignment"]
    assert assignment["speaks"] is True
    assert assignment["words"].startswith(
        "serving slot 0 is the embedding, serving slot 1 ↔ training slot 0, serving slot 2 ↔ training slot 1"
    )
    assert "capture [-1, 1, 5], trained [1, 5, 8]" in assignment["words"]
    assert assignment["resampled"] == "5 windows"
    [claims] = [finding for finding in found["findings"] if finding["kind"] == "claims"]
    assert (claims["passed"], claims["count"]) == (False, 3)


def test_swapped_slots_are_named(known: Served, ask: Ask) -> None:
    known.windows((6, 2, 9), told=TRAINED)
    found = ask()
    assert measured_of(found) == [6, 2, 9]
    assert states_of(found) == ["wrong", "wrong", "same"]
    assert found["verdict"]["headline"].endswith("trained on 2, 6 and 9: the right layers in another order")
    assert "not in the order of depth" in found["assignment"]["words"]


def test_a_slot_all_of_whose_rows_are_sinks_is_not_left_out(known: Served, ask: Ask) -> None:
    """The others are as trained, but that is not all there is to say."""
    known.windows(TRAINED[:2])
    text = known.target.text(100, 10, 7)
    sinks = profile_of(
        known.target.states(text, 9), text, slot=2, boundary=9, phase="prefill", time_ms=T0 + WINDOW_MS,
        span_ms=WINDOW_MS, row_class="sink", labels={},
    )  # fmt: skip
    known.feed.send(sinks)
    found = ask()
    assert states_of(found) == ["same", "same", "no_data"]
    assert found["verdict"]["state"] == "unknown"
    assert "Slots 0 and 1 are what the draft was trained on" in found["verdict"]["headline"]
    assert "Slot 2: no rows" in found["verdict"]["reasons"]


def test_layers_that_change_within_a_launch_are_not_pooled(known: Served, ask: Ask) -> None:
    """Two small windows of one boundary and two of another, as the engine says, are no window of both."""
    for start, boundaries in ((T0, TRAINED), (T0 + 2 * WINDOW_MS, (3, 7, 10))):
        known.windows(boundaries, 2, rows=100, requests=10, start_ms=start)
    windows = ask()["cells"][0]["windows"]
    assert [each["rows"] for each in windows] == [200, 200]
    assert [each["nearest_vcos"] for each in windows] == [2, 3]


def test_states_turned_with_equal_norms_are_found_by_direction(known: Served, ask: Ask) -> None:
    known.windows(change=rotated)
    found = ask()
    assert faults_of(found) == ["gross_direction"] * 3
    assert found["cells"][0]["gross_norm"] < 0.1
    assert found["cells"][0]["gross_direction"] > 0.35


def test_states_without_their_residual_are_found_by_norm(known: Served, ask: Ask, target: Target) -> None:
    def unresidualed(states: Floats) -> Floats:
        return states - 0.85 * np.linalg.norm(states, axis=1, keepdims=True) * _unit(states)

    known.windows(change=unresidualed, slots=[1])
    found = ask()
    assert states_of(found) == ["same", "wrong", "same"]
    assert faults_of(found)[1] == "gross_norm"
    assert "norms that differ by a factor of" in found["slots"][1]["headline"]


def _unit(states: Floats) -> Floats:
    return states / np.linalg.norm(states, axis=1, keepdims=True)


def test_states_behind_a_norm_are_found(known: Served, ask: Ask) -> None:
    weight = np.exp(0.3 * np.random.default_rng(5).normal(size=known.target.hidden_size))
    known.windows(change=lambda states: post_norm(states, weight), slots=[2])
    found = ask()
    assert faults_of(found) == ["none", "none", "gross_norm"]


def test_states_behind_the_final_norm_are_named_where_its_weight_is_known(
    served: Served, target: Target, ask: Ask
) -> None:
    weight = np.exp(0.3 * np.random.default_rng(5).normal(size=target.hidden_size))
    document = reference_of(target, TRAINED)
    last = LastState(boundary=12, norm="pre_norm", weight=weight.astype("<f4").tobytes())
    served.reference(msgspec.structs.replace(document, last=last))
    served.windows(change=lambda states: post_norm(states, weight), slots=[2], told=(None, None, None))
    found = ask()
    assert faults_of(found) == ["none", "none", "post_norm"]
    assert "mean((h/w)²) is 1;" in found["slots"][2]["headline"]
    told = [each for each in found["cells"][0]["invariants"] if each["kind"] == "post_norm"]
    assert [each["passed"] for each in told] == [True]


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.25])
def test_a_target_of_few_bits_is_no_fault(known: Served, ask: Ask, noise: float) -> None:
    known.windows(change=lambda states: quantised(states, noise))
    assert ask()["verdict"]["state"] == "ok"


def test_rows_that_are_not_finite_or_zero_are_a_fault_at_once(known: Served, ask: Ask) -> None:
    def spoilt(states: Floats) -> Floats:
        states = states.copy()
        states[3] = np.nan
        return states

    def emptied(states: Floats) -> Floats:
        states = states.copy()
        states[5:9] = 0
        return states

    known.windows(count=1, change=spoilt, slots=[0])
    known.windows(count=1, change=emptied, slots=[1], start_ms=T0 + WINDOW_MS)
    found = ask()
    assert faults_of(found) == ["not_finite", "zero_rows", "none"]
    assert "1 of 512 rows" in found["slots"][0]["headline"]


def test_stale_rows_are_a_fault(known: Served, ask: Ask) -> None:
    def stale(states: Floats) -> Floats:
        states = states.copy()
        states[20:40] = states[0]
        return states

    known.windows(change=stale, slots=[1])
    assert faults_of(ask())[1] == "duplicates"


def test_one_window_is_suspicious_and_two_are_a_fault(known: Served, ask: Ask) -> None:
    known.windows(count=2, phases=PHASES[:1])
    wrong: dict[str, Any] = {"boundaries": (3, 7, 10), "told": TRAINED, "count": 1, "phases": PHASES[:1]}
    known.windows(**wrong, start_ms=T0 + 2 * WINDOW_MS)
    found = ask()
    assert (found["verdict"]["state"], states_of(found)) == ("warn", ["suspected"] * 3)
    assert found["cells"][0]["missing"] == ["a second window that says the same (is another boundary)"]
    known.windows(**wrong, start_ms=T0 + 3 * WINDOW_MS)
    assert ask()["verdict"]["state"] == "bad"


def test_two_phases_confirm_each_other(known: Served, ask: Ask) -> None:
    known.windows([3, 7, 10], 1)
    found = ask()
    assert found["verdict"]["state"] == "bad"
    assert {cell["state"] for cell in found["cells"]} == {"suspected"}


def test_few_rows_say_nothing_and_what_is_missing(known: Served, ask: Ask) -> None:
    known.windows([3, 7, 10], 1, rows=40, requests=5, told=TRAINED)
    found = ask()
    assert found["verdict"]["state"] == "unknown"
    assert states_of(found) == ["not_enough"] * 3
    assert found["cells"][0]["missing"] == ["40 of 64 rows", "rows of 5 of 8 requests"]


def test_small_windows_are_put_together(known: Served, ask: Ask) -> None:
    known.windows(count=5, rows=40, requests=5)
    found = ask()
    assert found["verdict"]["state"] == "ok"
    assert found["cells"][0]["rows"] == 200


def test_ranks_are_merged(known: Served, ask: Ask) -> None:
    for rank in range(2):
        known.windows(count=1, rows=128, requests=16, labels={"dp_rank": str(rank)})
    found = ask()
    assert found["verdict"]["state"] == "ok"
    assert (found["cells"][0]["rows"], found["cells"][0]["votes"]) == (256, 1)


def test_rows_on_other_ids_than_the_references_are_not_enough(known: Served, ask: Ask) -> None:
    known.windows([3, 7, 10], known=range(40, 48))
    found = ask()
    assert states_of(found) == ["not_enough"] * 3
    assert found["cells"][0]["missing"][0] == "0 of 8 rows on the reference's token ids"


def test_directions_of_another_projection_do_not_compare(known: Served, ask: Ask) -> None:
    known.windows([3, 7, 10], projection="gauss-256-1")
    found = ask()
    assert states_of(found) == ["not_enough"] * 3
    assert "directions in the projection gauss-256-20260401" in found["cells"][0]["missing"][0]


def test_another_hidden_size_does_not_compare(served: Served, ask: Ask) -> None:
    other = Target(hidden_size=64)
    number = served.reference(reference_of(other, TRAINED))
    served.windows()
    found = ask(reference=number)
    assert states_of(found) == ["not_comparable"] * 3
    assert found["cells"][0]["missing"] == ["a reference of hidden size 96: the one here has 64"]
    assert ask()["reference"] is None


def test_profiles_of_mixed_hidden_sizes_are_never_added_up(known: Served, ask: Ask) -> None:
    known.windows(count=2)
    small = Target(hidden_size=64)
    text = small.text(256, 32, 3)
    known.feed.send(
        profile_of(small.states(text, 2), text, (), slot=0, time_ms=T0 + 3 * WINDOW_MS, span_ms=WINDOW_MS)
    )
    found = ask(reference=1, boundaries=2)
    cell = next(cell for cell in found["cells"] if (cell["slot"], cell["phase"]) == (0, "prefill"))
    assert cell["state"] == "not_comparable"
    assert found["slots"][1]["state"] == "same"


def test_without_all_boundaries_swaps_are_seen_and_an_off_by_one_is_not(
    served: Served, training: Reference, ask: Ask
) -> None:
    served.reference(training)
    served.windows([3, 7, 10], told=(None, None, None), phases=PHASES[:1], count=1)
    found = ask()
    assert found["verdict"]["state"] == "ok"
    assert found["resolution"] == "slots"
    assert "a boundary off by one is not" in found["resolution_note"]
    assert found["resolution_note"] in found["verdict"]["reasons"]
    assert found["resolution_note"] in found["missing"]
    served.windows((6, 2, 9), start_ms=T0 + WINDOW_MS, told=(None, None, None))
    found = ask()
    assert faults_of(found) == ["other_slot", "other_slot", "none"]
    assert "is training slot 1" in found["slots"][0]["headline"]


def test_without_any_reference_invariants_are_looked_at_alone(served: Served, ask: Ask) -> None:
    served.windows((0, 6, 9))
    found = ask()
    assert found["resolution"] == "none"
    assert faults_of(found) == ["embedding", "none", "none"]
    assert states_of(found) == ["wrong", "not_comparable", "not_comparable"]


def test_without_a_training_reference_the_engines_claim_stands_in(
    served: Served, calibration: Reference, ask: Ask
) -> None:
    served.reference(calibration)
    served.windows([3, 7, 10], told=TRAINED)
    found = ask()
    assert measured_of(found) == [3, 7, 10]
    assert found["verdict"]["state"] == "bad"
    assert any("stands in for it" in words for words in found["missing"])


def test_a_dump_that_names_other_boundaries_than_its_states_are_is_found(
    served: Served, target: Target, calibration: Reference, ask: Ask
) -> None:
    served.reference(reference_of(target, (3, 7, 10), told=TRAINED))
    served.reference(calibration)
    served.windows([3, 7, 10], told=TRAINED)
    found = ask()
    assert states_of(found) == ["same"] * 3, (
        "the draft sees what it was trained on, whatever was written down"
    )
    assert found["verdict"]["state"] == "warn"
    [finding] = [each for each in found["findings"] if each["kind"] == "training_boundaries"]
    assert finding["message"] == "it says 2, 6 and 9, its states are nearest to 3, 7 and 10"


def test_prefill_and_verification_that_differ_are_found(known: Served, ask: Ask) -> None:
    known.windows(phases=PHASES[:1])
    known.windows([3, 7, 10], phases=PHASES[1:2])
    found = ask()
    [finding] = [each for each in found["findings"] if each["kind"] == "phases"]
    assert finding["passed"] is False
    assert "slot 0: boundary 2 in prefill, 3 in verification" in finding["message"]


def test_the_newest_launch_is_judged_and_an_older_one_on_request(known: Served, ask: Ask) -> None:
    known.windows([3, 7, 10])
    known.launch("b2", T0 + 4 * WINDOW_MS)
    known.windows(count=2, start_ms=T0 + 4 * WINDOW_MS)
    found = ask()
    assert found["verdict"]["state"] == "ok"
    assert found["launch"]["launch_id"] == 2
    assert ask(launch="1")["verdict"]["state"] == "bad"


def test_a_reference_of_the_same_model_is_preferred_to_a_newer_one(
    known: Served, target: Target, ask: Ask
) -> None:
    known.number += 1
    known.reference(reference_of(target, (1, 5, 8), name="other", model="org/another"))
    known.windows()
    assert ask()["reference"]["model"] == MODEL


def test_nothing_profiled_says_how_to_begin(served: Served, ask: Ask) -> None:
    found = ask()
    assert found["verdict"]["state"] == "unknown"
    assert "SPECSCOPE_SPOOL" in found["missing"][0]
    assert found["cells"] == []
    assert ask("/trend")["points"] == []
