"""The nearest boundary, the votes and the assignment, on states whose boundary is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.synthetic_states import IDS, Target, all_boundaries, post_norm, profile_of, quantised

from specscope_collectors.states.assignment import NONE_COST, match, votes_of
from specscope_collectors.states.bank import Bank, Place, bank_of
from specscope_collectors.states.rules import Fault, Judged, judge, ranked, vote
from specscope_collectors.states.sums import Sums, UnequalError, sums_of

TARGET = Target(hidden_size=64, layers=10)


@pytest.fixture(scope="module")
def bank() -> Bank:
    """All boundaries."""
    document = all_boundaries(TARGET, rows=2_000)
    places = [Place(f"boundary {each.boundary}", each.boundary) for each in document.profiles]
    return bank_of(places, [sums_of(each) for each in document.profiles])


def window(boundary: int, seed: int, rows: int = 256, requests: int = 32, shift: float = 0.0) -> Sums:
    """Return a window of one boundary."""
    text = TARGET.text(rows, requests, seed, shift)
    return sums_of(profile_of(TARGET.states(text, boundary), text, IDS))


def test_both_statistics_name_every_boundary(bank: Bank) -> None:
    windows = [window(boundary, 50 + boundary) for boundary in range(11)]
    for scores in (bank.vcos_of(windows), bank.dnll_of(windows)):
        assert [ranked(each.distances).best for each in scores] == list(range(11))


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_no_false_alarm_and_full_power_at_either_size(bank: Bank, shift: float) -> None:
    for rows, requests in ((64, 8), (256, 32)):
        for seed in range(6):
            right = judge(window(4, seed, rows, requests, shift), bank, 4, bank.sums[4])
            wrong = judge(window(5, seed, rows, requests, shift), bank, 4, bank.sums[4])
            assert right.fault == Fault.NONE
            assert (wrong.fault, wrong.place) == (Fault.WRONG_BOUNDARY, 5)


def test_many_windows_at_once_are_as_one_by_one(bank: Bank) -> None:
    windows = [window(3, 1), window(7, 2, rows=70, requests=9), sums_of(profile_of(*_without_ids()))]
    for many, alone in ((bank.vcos_of(windows), bank.vcos), (bank.dnll_of(windows), bank.dnll)):
        for each, own in zip(many, windows, strict=True):
            one = alone(own)
            assert np.allclose(each.distances, one.distances, atol=1e-6, equal_nan=True)
            assert (each.rows, each.ids) == (one.rows, one.ids)


def _without_ids() -> tuple[np.ndarray, object]:
    text = TARGET.text(80, 10, 4)
    return TARGET.states(text, 2), text


def test_the_root_of_its_rows_is_how_much_a_token_counts(bank: Bank) -> None:
    one = window(4, 3)
    scores = bank.vcos(one)
    distances, rows = bank.by_id([one])
    known = rows[0] > 0
    weights = np.sqrt(rows[0][known])
    expected = np.exp(np.log(distances[0][:, known]) @ weights / weights.sum())
    assert scores.distances == pytest.approx(expected, rel=1e-5)
    assert scores.rows == one.common_rows


def test_a_few_common_ids_that_are_used_otherwise_do_not_decide(bank: Bank) -> None:
    one = window(4, 3)
    odd = np.argsort(-one.token_rows)[:3]
    vectors = one.token_directions.copy()
    places = np.searchsorted(bank.token_ids, one.token_ids[odd])
    vectors[odd] = (bank.units[5, places] - bank.units[4, places]) * one.token_rows[odd][:, None]
    served = replace(one, token_directions=vectors)
    distances, rows = bank.by_id([served])
    assert np.argmin(distances[0] @ rows[0]) == 5
    assert ranked(bank.vcos(served).distances).best == 4


def varied(one: Sums, factor: float) -> Sums:
    """Return a window whose channels vary more than they did, about the same means."""
    mean = one.directions / one.norms.rows
    variance = one.direction_squares / one.norms.rows - mean * mean
    return replace(one, direction_squares=one.norms.rows * (factor * variance + mean * mean))


def test_text_that_varies_otherwise_is_told_by_its_own_variances(bank: Bank) -> None:
    plain, served = window(5, 11), varied(window(5, 11), 4)
    assert ranked(bank.dnll(served).distances).best != 5
    for claimed, fault in ((4, Fault.WRONG_BOUNDARY), (5, Fault.NONE)):
        found = judge(served, bank, claimed, bank.sums[claimed])
        assert (found.fault, found.place, found.likelihood.best) == (fault, 5, 5)
        assert found.own_dnll is not None
        assert judge(plain, bank, claimed, bank.sums[claimed]).own_dnll is None, "it is not asked"


def test_own_variances_decide_between_the_trained_boundary_and_its_neighbours_only(bank: Bank) -> None:
    served = varied(window(5, 11), 4)
    for claimed in (2, 3, 7, None):
        found = judge(served, bank, claimed, bank.sums[5])
        assert (found.fault, found.place, found.agree, found.own_dnll) == (Fault.NONE, None, None, None)
        assert found.vcos.best == 5


def test_by_its_own_variances_nothing_is_named_that_ids_do_not_tell_beyond_chance(bank: Bank) -> None:
    served = varied(window(5, 11), 4)
    most = [int(np.argmax(served.token_rows))]
    alone = replace(
        served, token_ids=served.token_ids[most], token_rows=served.token_rows[most],
        token_directions=served.token_directions[most],
    )  # fmt: skip
    assert ranked(bank.vcos(alone).distances).best == ranked(bank.own_dnll(alone).distances).best == 5
    found = judge(alone, bank, 4, bank.sums[4])
    assert (found.fault, found.place, found.missing) == (Fault.NONE, None, ())


def test_the_lead_is_that_of_a_weighted_mean_over_token_ids(bank: Bank) -> None:
    one = window(4, 3)
    distances, rows = bank.by_id([one])
    known = rows[0] > 0
    weights = np.sqrt(rows[0][known]) / np.sqrt(rows[0][known]).sum()
    nearer = np.log(distances[0][6, known]) - np.log(distances[0][4, known])
    mean = np.average(nearer, weights=weights)
    spread = np.average((nearer - mean) ** 2 * weights, weights=weights) / (1 - (weights**2).sum())
    leads = bank.leads(one, 4)
    assert leads[6] == pytest.approx(mean / math.sqrt(spread), rel=1e-5)
    assert leads[4] == math.inf


def test_places_of_unequal_size_make_no_bank() -> None:
    small, wide = (
        sums_of(profile_of(target.states(text, 1), text))
        for target in (Target(hidden_size=16), Target(hidden_size=24))
        for text in [target.text(20, 4, 1)]
    )
    with pytest.raises(UnequalError, match="hidden sizes 16, 24"):
        bank_of([Place("a"), Place("b")], [small, wide])
    with pytest.raises(UnequalError, match="no profile"):
        bank_of([], [])


def test_channels_that_hardly_vary_do_not_decide() -> None:
    text = TARGET.text(400, 40, 9)
    states = [TARGET.states(text, boundary) for boundary in (3, 4)]
    for each in states:
        each[:, 5] = 1e-9
    bank = bank_of([Place("3", 3), Place("4", 4)], [sums_of(profile_of(each, text, IDS)) for each in states])
    served = states[0].copy()
    served[:, 5] = 3e-4
    found = bank.dnll(sums_of(profile_of(served, text, IDS)))
    assert np.isfinite(found.distances).all()
    assert ranked(found.distances).best == 0


def judged(fault: Fault, place: int | None = None) -> Judged:
    """Return what a window might say."""
    nothing = ranked(np.full(2, np.nan))
    return Judged(fault, place, nothing, nothing, 0, 0, None, None, ())


outcomes = st.lists(
    st.sampled_from(
        [(Fault.NONE, 1), (Fault.WRONG_BOUNDARY, 2), (Fault.WRONG_BOUNDARY, 3), (Fault.GROSS_NORM, None)]
    ),
    max_size=6,
)


@given(outcomes)
def test_two_of_the_last_three_windows_confirm(found: Sequence[tuple[Fault, int | None]]) -> None:
    told = vote([judged(*each) for each in found])
    last = list(found[-3:])
    most = max((last.count(each) for each in last if each[0] != Fault.NONE), default=0)
    assert told.is_confirmed == (most >= 2)
    assert told.votes == len(last)
    assert (told.fault == Fault.NONE) == (most == 0)
    if most:
        assert told.votes_for == most


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ((2, 5, 8), (2, 5, 8)),
        ((3, 6, 9), (3, 6, 9)),
        ((0, 2, 5), (0, 2, 5)),
        ((5, 2, 8), (5, 2, 8)),
    ],
)
@pytest.mark.parametrize("windows", [1, 6])
def test_slots_are_matched_to_boundaries(
    bank: Bank, served: tuple[int, ...], expected: tuple[int, ...], windows: int
) -> None:
    parts = [[window(boundary, 70 + index) for index in range(windows)] for boundary in served]
    found = match(parts, bank)
    assert found is not None
    assert found.places == expected
    assert found.speaks
    assert found.is_ordered == (tuple(sorted(served)) == served)
    assert found.drawn.endswith("windows" if windows == 6 else "token ids")
    assert found.margin is not None
    assert found.margin > 0


def test_the_embedding_gets_no_false_mate_among_slots(bank: Bank) -> None:
    slots = bank_of(
        [Place(f"training slot {i}", b, i) for i, b in enumerate((2, 5, 8))],
        [bank.sums[b] for b in (2, 5, 8)],
    )
    found = match([[window(boundary, 5)] for boundary in (0, 2, 5)], slots)
    assert found is not None
    assert found.places == (None, 0, 1)
    assert found.costs[0] == NONE_COST
    assert found.speaks


def test_states_of_no_place_are_none_of_these(bank: Bank) -> None:
    text = TARGET.text(256, 32, 3)
    noise = np.random.default_rng(1).normal(size=(256, 64))
    found = match([[sums_of(profile_of(noise, text, IDS))]], bank)
    assert found is not None
    assert found.places == (None,)


def test_states_behind_a_norm_are_none_of_these_though_their_directions_are_near(bank: Bank) -> None:
    text = TARGET.text(256, 32, 3)
    states = post_norm(TARGET.states(text, 5), np.full(64, 0.1))
    parts = [[sums_of(profile_of(states, text, IDS))]]
    assert int(bank.vcos(parts[0][0]).distances.argmin()) == 5
    found = match(parts, bank)
    assert found is not None
    assert found.places == (None,)


def test_the_assignment_is_as_sure_as_all_its_slots_together() -> None:
    rounds = np.tile([2, 5, 8], (200, 1))
    rounds[:6, 0], rounds[6:12, 1], rounds[12:18, 2] = 3, 4, 9
    votes, joint = votes_of(np.array([2, 5, 8]), rounds)
    assert votes.tolist() == [0.97, 0.97, 0.97]
    assert joint == pytest.approx(0.91)


@settings(max_examples=15, deadline=None)
@given(st.integers(8, 60), st.sampled_from([(2, 5, 8), (3, 4, 5), (5, 2, 8), (0, 2, 5)]), st.integers(0, 99))
def test_what_it_speaks_of_came_out_as_a_whole(
    bank: Bank, rows: int, served: tuple[int, ...], seed: int
) -> None:
    text = TARGET.text(rows, 8, 300 + seed)
    states = [quantised(TARGET.states(text, boundary), 1.0, seed) for boundary in served]
    found = match([[sums_of(profile_of(each, text, IDS))] for each in states], bank, rounds=60)
    if found is None:
        return
    assert found.joint <= min(found.votes)
    assert found.speaks == (found.joint > 0.95)


def test_without_common_ids_nothing_is_assigned(bank: Bank) -> None:
    text = TARGET.text(64, 8, 3)
    assert match([[sums_of(profile_of(TARGET.states(text, 2), text, (45, 46, 47)))]], bank) is None
    assert match([], bank) is None
