"""Whether rows stand behind the final norm: rows that repeat a shared prefix decide nothing."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.synthetic_states import Floats, Target, post_norm, profile_of

from specscope_collectors.states.post_norm import is_post_norm, mean_square, normed_square
from specscope_collectors.states.sums import Sums, added, sums_of

TARGET = Target(hidden_size=48, layers=6, vocabulary=24)
WEIGHT = np.exp(0.3 * np.random.default_rng(5).normal(size=48))
TEXT = TARGET.text(256, 32, 3)
REPEATED = 160
"""Rows that are one row of a prefix, which 160 requests share."""


def square_of(window: Sums) -> float:
    found = mean_square(window, WEIGHT)
    assert found is not None
    return found


def served(states: Floats, prefix_square: float, *, is_told: bool = True) -> Sums:
    """Return a window; the row of the prefix has this mean((h/w)²)."""
    rows = states.copy()
    rows[:REPEATED] = np.sqrt(prefix_square) * WEIGHT
    is_repeated = (np.arange(256) < REPEATED) & (np.arange(256) > 0)
    return sums_of(profile_of(rows, TEXT, is_repeated=is_repeated if is_told else None))


def test_a_shared_prefix_makes_no_residual_stream_look_normed() -> None:
    states = TARGET.states(TEXT, 3)
    states *= np.sqrt(0.5 / ((states[REPEATED:] / WEIGHT) ** 2).mean())
    prefix = (256 - 96 * 0.5) / REPEATED
    assert is_post_norm(square_of(served(states, prefix, is_told=False))), "pooled they cancel"
    apart = square_of(served(states, prefix))
    assert apart == pytest.approx((prefix + 96 * 0.5) / 97, abs=0.01)
    assert not is_post_norm(apart)


def test_a_shared_prefix_hides_no_normed_state() -> None:
    normed = post_norm(TARGET.states(TEXT, 6), WEIGHT)
    prefix = 1.05  # what few bits make of one row
    assert not is_post_norm(square_of(served(normed, prefix, is_told=False)))
    assert is_post_norm(square_of(served(normed, prefix)))


def test_windows_of_older_probes_add_up_with_newer_ones() -> None:
    states = TARGET.states(TEXT, 4)
    old, new = served(states, 2.0, is_told=False), served(states, 2.0)
    both = added([old, new])
    assert (old.energy_rows, new.energy_rows, both.energy_rows) == (256, 97, 353)
    expected = (256 * square_of(old) + 97 * square_of(new)) / 353
    assert square_of(both) == pytest.approx(expected, rel=1e-5)


def test_rows_that_happen_to_be_so_large_on_average_are_not_behind_the_norm() -> None:
    """What a block puts out without the residual is of any size, and its norms are spread."""
    spread = np.exp(0.3 * np.random.default_rng(6).normal(size=(256, 1)))
    states = spread * TARGET.states(TEXT, 4)
    states /= np.sqrt(((states / WEIGHT) ** 2).mean())
    window = sums_of(profile_of(states, TEXT))
    assert is_post_norm(square_of(window))
    found = normed_square(window, WEIGHT)
    assert found is not None
    assert abs(found - 1) > 0.1


def test_a_normed_state_is_one_by_both_means() -> None:
    for weight in (WEIGHT, WEIGHT - 1):
        found = normed_square(sums_of(profile_of(post_norm(TARGET.states(TEXT, 6), WEIGHT), TEXT)), weight)
        assert found == pytest.approx(1, abs=0.01)
