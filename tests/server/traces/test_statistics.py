"""Changes of means: intervals that cover as often as they say, and silence where there is too little."""

from __future__ import annotations

import numpy as np
import pytest

from specscope_server.traces.statistics import MIN_OCCURRENCES, change_of, mean_over_ranks, spread_of


def test_a_change_is_found_and_the_same_twice() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(20, 1, 30), random.normal(18, 1, 30)
    found = change_of(a, b)
    assert found.change == pytest.approx(b.mean() - a.mean())
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.change < found.high < 0
    assert found.is_shown
    assert change_of(a, b) == found


def test_no_change_is_rarely_shown() -> None:
    random = np.random.default_rng(2)
    shown = sum(change_of(random.normal(20, 2, 25), random.normal(20, 2, 25)).is_shown for _ in range(300))
    assert shown <= 33  # 5 % of 300 are 15; a little more is the price of few blocks


def test_few_occurrences_say_nothing_of_scatter() -> None:
    few, many = np.ones(MIN_OCCURRENCES - 1), np.zeros(50)
    found = change_of(few, many)
    assert (found.change, found.low, found.is_shown) == (-1.0, None, False)
    assert change_of(many, np.zeros(0)).low is None


def test_means_over_ranks_and_spreads() -> None:
    assert list(mean_over_ranks([np.array([1.0, 3.0, 5.0]), np.array([3.0, 5.0])])) == [2.0, 4.0]
    assert len(mean_over_ranks([])) == 0
    found = spread_of(np.arange(101, dtype=np.float64))
    assert found is not None
    assert (found.n, found.median, found.p95, found.mean) == (101, 50.0, 95.0, 50.0)
    assert spread_of(np.zeros(0)) is None
