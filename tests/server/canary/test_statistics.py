"""Paired changes: worked by hand, exact where exact is possible, and honest about noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.canary.statistics import MIN_PAIRS, paired_change, sign_flip_p_value


def test_a_change_common_to_all_pairs_is_found_whatever_prompts_differ_by() -> None:
    before = np.array([1.2, 1.9, 2.4, 2.8, 3.1, 3.6, 1.5, 2.2])
    noise = np.array([1.0, 0.999, 1.001, 1.0, 1.001, 0.999, 1.0, 1.0])
    found = paired_change(before, before * 0.96 * noise)
    assert found.change == pytest.approx(-0.04, abs=0.001)
    assert found.high is not None
    assert found.high < 0
    assert found.lower == 8
    assert found.is_shown
    assert found.p_value == pytest.approx(2 / 2**8)


def test_few_pairs_say_a_mean_but_no_interval() -> None:
    found = paired_change(np.array([2.0] * (MIN_PAIRS - 1)), np.array([1.0] * (MIN_PAIRS - 1)))
    assert found.change == pytest.approx(-0.5)
    assert (found.low, found.high, found.p_value) == (None, None, None)
    assert not found.is_shown


def test_equal_pairs_show_no_change() -> None:
    same = np.linspace(1.1, 3.0, 24)
    found = paired_change(same, same)
    assert (found.change, found.lower, found.higher, found.p_value) == (0, 0, 0, 1)
    assert not found.is_shown


def test_the_exact_test_counts_all_flips() -> None:
    assert sign_flip_p_value(np.array([1.0, 2.0, 3.0])) == pytest.approx(2 / 8)
    assert sign_flip_p_value(np.array([1.0, -1.0])) == 1


def test_false_alarms_are_as_rare_as_promised() -> None:
    random = np.random.default_rng(7)
    before = random.uniform(1.2, 3.5, (2_000, 12))
    alarms = sum(paired_change(row, row * np.exp(random.normal(0, 0.03, 12))).is_shown for row in before)
    assert alarms / 2_000 < 0.06


def test_power_for_a_loss_of_four_percent_with_the_shipped_number_of_prompts() -> None:
    random = np.random.default_rng(8)
    rows = random.uniform(1.2, 3.5, (500, 24))
    found = [paired_change(row, row * 0.96 * np.exp(random.normal(0, 0.05, 24))).is_shown for row in rows]
    assert np.mean(found) > 0.9


@given(
    st.lists(st.floats(1, 9), min_size=MIN_PAIRS, max_size=30),
    st.lists(st.floats(1, 9), min_size=30, max_size=30),
)
def test_swapping_the_sides_turns_the_change_around(a: list[float], b: list[float]) -> None:
    x, y = np.array(a), np.array(b[: len(a)])
    one, other = paired_change(x, y), paired_change(y, x)
    assert one.change is not None
    assert other.change is not None
    assert math.log1p(one.change) == pytest.approx(-math.log1p(other.change), abs=1e-9)
    assert (one.lower, one.higher, one.p_value) == (other.higher, other.lower, other.p_value)
