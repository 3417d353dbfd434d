"""Profiles add up as their rows do, in any order; what does not belong together is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.synthetic_states import IDS, Target, Text, profile_of

from specscope_collectors.states import distances
from specscope_collectors.states.sums import Norms, UnequalError, added, added_norms, sums_of

TARGET = Target(hidden_size=24, layers=4, vocabulary=12)


def norms_of(values: list[int], width: float = 0.02) -> Norms:
    """Return bins at these places."""
    first = min(values)
    return Norms(first, np.bincount(np.array(values) - first).astype(np.int64), width)


places = st.lists(st.integers(-300, 300), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole(parts: int, order: object) -> None:
    text = TARGET.text(90, 9, 5)
    states = TARGET.states(text, 2)
    pieces = []
    for rows in np.array_split(np.arange(90), parts):
        piece = Text(text.ids[rows], text.requests[rows], text.context[rows])
        pieces.append(sums_of(profile_of(states[rows], piece, IDS)))
    order.shuffle(pieces)  # type: ignore[attr-defined]
    whole, sum_of_parts = sums_of(profile_of(states, text, IDS)), added(pieces)
    assert sum_of_parts.rows == whole.rows == 90
    assert sum_of_parts.profiles == parts
    assert (sum_of_parts.token_ids == whole.token_ids).all()
    assert (sum_of_parts.token_rows == whole.token_rows).all()
    for name in ("directions", "direction_squares", "energy", "token_directions"):
        assert np.allclose(getattr(sum_of_parts, name), getattr(whole, name), rtol=1e-4, atol=1e-4), name
    assert distances.w1(sum_of_parts.norms, whole.norms) == pytest.approx(0, abs=1e-12)


def test_what_does_not_belong_together_is_refused_or_left_out() -> None:
    text = TARGET.text(20, 4, 1)
    one = sums_of(profile_of(TARGET.states(text, 1), text, IDS))
    wide = Target(hidden_size=32, layers=4, vocabulary=12)
    with pytest.raises(UnequalError, match="hidden sizes 24, 32"):
        added([one, sums_of(profile_of(wide.states(text, 1), text, IDS))])
    with pytest.raises(UnequalError, match="no profiles"):
        added([])
    with pytest.raises(UnequalError, match="unequal widths"):
        added_norms([norms_of([1]), norms_of([1], 0.01)])
    other = sums_of(profile_of(TARGET.states(text, 1), text, IDS, projection="gauss-256-1"))
    both = added([one, other])
    assert (both.projection, len(both.token_ids), both.rows) == ("", 0, 40)


@given(places, places, places)
def test_w1_is_a_distance(a: list[int], b: list[int], c: list[int]) -> None:
    one, two, three = norms_of(a), norms_of(b), norms_of(c)
    assert distances.w1(one, one) == 0
    assert distances.w1(one, two) == pytest.approx(distances.w1(two, one))
    assert distances.w1(one, three) <= distances.w1(one, two) + distances.w1(two, three) + 1e-9
    assert distances.ks(one, two) == pytest.approx(distances.ks(two, one))
    assert 0 <= distances.ks(one, two) <= 1 + 1e-12
    assert distances.psi(one, two) >= 0


@given(places, st.integers(-200, 200))
def test_a_shift_is_its_own_w1(values: list[int], shift: int) -> None:
    moved = norms_of([value + shift for value in values])
    assert distances.w1(norms_of(values), moved) == pytest.approx(abs(shift) * 0.02)


@given(places)
def test_quantiles_rise_and_lie_within(values: list[int]) -> None:
    found = distances.quantiles(norms_of(values), [0, 0.1, 0.5, 0.9, 1])
    assert found == sorted(found)
    assert found[0] == pytest.approx(min(values) * 0.02)
    assert found[-1] == pytest.approx((max(values) + 1) * 0.02)


def test_nothing_is_not_zero() -> None:
    empty = Norms(0, np.zeros(0, np.int64))
    full = norms_of([1, 2, 3])
    for distance in (distances.w1, distances.ks, distances.psi):
        assert np.isnan(distance(empty, full))
        assert np.isnan(distance(full, empty))
    assert np.isnan(distances.quantiles(empty, [0.5])[0])


def test_channel_rms_and_direction_do_not_see_scale() -> None:
    text = TARGET.text(200, 20, 1)
    states = TARGET.states(text, 3)
    one, scaled = (sums_of(profile_of(each, text)) for each in (states, 3.7 * states))
    assert distances.channel_rms(one, scaled) == pytest.approx(0, abs=1e-5)
    assert distances.direction(one, scaled) == pytest.approx(0, abs=1e-6)
    assert distances.w1(one.norms, scaled.norms) == pytest.approx(np.log(3.7), abs=0.02)


def test_of_requests_what_is_certain_is_counted() -> None:
    text = TARGET.text(20, 4, 1)
    states = TARGET.states(text, 1)
    old, first, again = (
        sums_of(profile_of(states, text, IDS, **told))
        for told in ({}, {"new_requests": 4}, {"new_requests": 1})
    )  # fmt: skip
    assert added([old] * 16).requests == 4, (
        "of requests that nobody tells apart only those of one are certain"
    )
    assert added([first, again, again]).requests == 6
    assert added([again, first, old]).requests == 5
    assert (
        added([added([again, first]), again]).requests == added([again, added([first, again])]).requests == 6
    )
