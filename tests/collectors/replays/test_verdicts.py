"""The right verdict for every kind of fault, from states that are made to have it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.collectors.replays.made_states import (
    HIDDEN,
    LAYERS,
    SLOTS,
    Made,
    make,
    rows_of,
    served_of,
    training_of,
)

from specscope_collectors.replays.comparing import Floats
from specscope_collectors.replays.errors import ReplayError
from specscope_collectors.replays.pairing import Served, compare
from specscope_collectors.replays.result import document_of, event_of, exit_status
from specscope_collectors.replays.spooled import Gathered
from specscope_collectors.replays.verdicts import SlotVerdict, Verdict

RANDOM = np.random.default_rng(11)
NOISE = RANDOM.normal(size=(40, HIDDEN)).astype(np.float32)
ROTATION = np.linalg.qr(RANDOM.normal(size=(HIDDEN, HIDDEN)))[0].astype(np.float32)
WEIGHT = RANDOM.gamma(4.0, 0.5, HIDDEN).astype(np.float32)


@pytest.fixture(scope="module")
def made() -> Made:
    """The model's states."""
    return make()


def judged(made: Made, state: Callable[[int, int], Floats], has_rows: bool = True) -> tuple[SlotVerdict, ...]:
    """Return the verdicts of states that serving had."""
    rows = rows_of(made) if has_rows else None
    return compare(training_of(made), served_of(made, state), rows).slots


def noisy(states: Floats, share: float) -> Floats:
    """Return states with errors of a share of each row's norm."""
    lengths = np.linalg.norm(states, axis=1, keepdims=True)
    noise = NOISE[: len(states)] / np.linalg.norm(NOISE[: len(states)], axis=1, keepdims=True)
    found: Floats = states + share * lengths * noise
    return found


def normed(states: Floats) -> Floats:
    """Return states behind an RMS norm."""
    found: Floats = WEIGHT * states / np.sqrt((states**2).mean(axis=1, keepdims=True))
    return found


@pytest.mark.parametrize("has_rows", [True, False])
def test_the_same_numbers_are_the_same(made: Made, has_rows: bool) -> None:
    for found in judged(
        made, lambda request, slot: noisy(made.streams[request][SLOTS[slot]], 0.01), has_rows
    ):
        assert found.verdict == Verdict.SAME
        assert found.at_nearest is not None
        assert found.at_nearest.relative_l2 == pytest.approx(0.01, rel=0.01)
        assert found.at_nearest.cosine > 0.9998
        assert found.votes == 1
        assert found.requests == 3


@pytest.mark.parametrize("share", [0.06, 0.12, 0.3])
def test_quantisation_is_told_from_another_boundary(made: Made, share: float) -> None:
    state = lambda request, slot: noisy(made.streams[request][SLOTS[slot]], share)  # noqa: E731
    for slot, found in enumerate(judged(made, state)):
        assert found.verdict == Verdict.QUANTISED
        assert found.nearest_boundary == SLOTS[slot]


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_off_by_one_is_named(made: Made, shift: int) -> None:
    state = lambda request, slot: made.streams[request][SLOTS[slot] + shift]  # noqa: E731
    for slot, found in enumerate(judged(made, state)):
        assert found.verdict == Verdict.WRONG_BOUNDARY
        assert found.nearest_boundary == SLOTS[slot] + shift
        assert found.claimed == f"boundary {SLOTS[slot]}"
        assert f"trained on boundary {SLOTS[slot]}" in found.words
        assert found.at_claimed is not None
        assert found.at_claimed.cosine > 0.9, "a limit of the cosine would have let it pass"


def test_an_off_by_one_and_quantised_at_once_is_still_named(made: Made) -> None:
    state = lambda request, slot: noisy(made.streams[request][SLOTS[slot] + 1], 0.15)  # noqa: E731
    assert [found.nearest_boundary for found in judged(made, state)] == [3, 13, 22]


def test_without_rows_at_all_boundaries_an_off_by_one_is_unsure_and_says_so(made: Made) -> None:
    state = lambda request, slot: made.streams[request][SLOTS[slot] + 1]  # noqa: E731
    for found in judged(made, state, has_rows=False):
        assert found.verdict == Verdict.UNSURE
        assert "--rows" in found.words


def test_the_embedding_in_front_shifts_all_slots(made: Made) -> None:
    captured = (0, 2, 12)
    state = lambda request, slot: made.streams[request][captured[slot]]  # noqa: E731
    found = judged(made, state)
    assert [each.nearest_boundary for each in found] == [0, 2, 12]
    assert {each.verdict for each in found} == {Verdict.WRONG_BOUNDARY}
    assert "boundary 0 (the embedding)" in found[0].words
    without = judged(made, state, has_rows=False)
    assert [each.nearest for each in without[1:]] == [
        "training slot 0 (boundary 2)",
        "training slot 1 (boundary 12)",
    ]


def test_swapped_slots_are_named_without_rows(made: Made) -> None:
    state = lambda request, slot: made.streams[request][SLOTS[2 - slot]]  # noqa: E731
    found = judged(made, state, has_rows=False)
    assert [each.verdict for each in found] == [Verdict.WRONG_BOUNDARY, Verdict.SAME, Verdict.WRONG_BOUNDARY]
    assert found[0].nearest == "training slot 2 (boundary 21)"


def test_a_rotation_with_identical_norms_is_named(made: Made) -> None:
    for slot, found in enumerate(
        judged(made, lambda request, slot: made.streams[request][SLOTS[slot]] @ ROTATION)
    ):
        assert found.verdict == Verdict.ROTATED
        assert found.nearest_boundary == SLOTS[slot]
        assert found.at_nearest is not None
        assert abs(found.at_nearest.ln_norm_ratio) < 1e-4
        assert abs(found.at_nearest.cosine) < 0.3


def test_states_behind_a_norm_are_named(made: Made) -> None:
    for slot, found in enumerate(
        judged(made, lambda request, slot: normed(made.streams[request][SLOTS[slot]]))
    ):
        assert found.verdict == Verdict.POST_NORM
        assert found.nearest_boundary == SLOTS[slot]


def test_a_lost_residual_is_near_to_no_boundary(made: Made) -> None:
    for found in judged(made, lambda request, slot: made.blocks[request][SLOTS[slot]]):
        assert found.verdict == Verdict.UNLIKE
        assert "residual" in found.words


def test_of_another_model_everything_is_unlike(made: Made) -> None:
    other = make(77)
    for found in judged(made, lambda request, slot: other.streams[request][SLOTS[slot]]):
        assert found.verdict == Verdict.UNLIKE


def test_cached_prefixes_leave_fewer_rows_and_none_is_no_data(made: Made) -> None:
    training, rows = training_of(made), rows_of(made)
    states = np.concatenate([made.streams[0][boundary] for boundary in SLOTS], axis=1)
    tail = {0: Served(np.arange(32, 40), states[32:])}
    assert [each.rows for each in compare(training, tail, rows).slots] == [4, 4, 4]
    assert {each.verdict for each in compare(training, tail, rows).slots} == {Verdict.SAME}
    less = {0: Served(np.arange(34, 40), states[34:])}
    assert {each.verdict for each in compare(training, less, rows).slots} == {Verdict.NO_DATA}
    nothing = compare(training, {}, rows, "the probe is off")
    assert [(each.verdict, each.words) for each in nothing.slots] == [
        (Verdict.NO_DATA, "the probe is off")
    ] * 3
    assert exit_status(nothing) == 4


def test_rows_without_numbers_are_no_data(made: Made) -> None:
    for found in judged(made, lambda request, slot: np.full((40, HIDDEN), np.nan, np.float32)):
        assert found.verdict == Verdict.NO_DATA


def test_the_document_holds_the_numbers_and_no_token(made: Made) -> None:
    served = served_of(made, lambda request, slot: made.streams[request][SLOTS[slot] + 1])
    compared, training = compare(training_of(made), served, rows_of(made)), training_of(made)
    document = document_of(compared, training, Gathered(boundaries=(3, 13, 22)), "ab" * 8)
    assert document["captured"] == [3, 13, 22]
    assert len(document["slots"][0]["distances"]) == LAYERS + 1
    assert not {"token_ids", "input_ids"} & set(document)
    event = event_of(document, 5)
    assert event.kind == "replay"
    assert event.message.startswith("paired replay: slot 0 WRONG BOUNDARY")
    assert exit_status(compared) == 3


@pytest.mark.parametrize("width", [HIDDEN // 2, 3 * HIDDEN - 1, HIDDEN * 12288 // 7168, 0, 6 * HIDDEN])
def test_states_of_another_model_are_refused_with_both_sizes(made: Made, width: int) -> None:
    served = {0: Served(np.arange(40), np.ones((40, width), np.float32))}
    with pytest.raises(ReplayError, match=rf"{width} wide.* hidden size {HIDDEN}.*--dump of one target"):
        compare(training_of(made), served, None)


def test_states_of_two_widths_in_one_replay_are_refused(made: Made) -> None:
    served = {k: Served(np.arange(40), np.ones((40, HIDDEN * (k + 2)), np.float32)) for k in range(2)}
    with pytest.raises(ReplayError, match=f"{2 * HIDDEN} and {3 * HIDDEN} wide"):
        compare(training_of(made), served, None)
