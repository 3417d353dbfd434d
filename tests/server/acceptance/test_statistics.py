"""Acceptance from counts: formulas, intervals and idleness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specscope_server.acceptance.statistics import (
    Ratio,
    active_buckets,
    bootstrapped_ratio,
    clustered_ratio,
    derived_accepted,
    longest_unseen,
    mean_over,
    strict_acceptance,
    sum_over,
    time_weighted,
)

NAN = float("nan")
histograms = st.lists(
    st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any), min_size=1, max_size=30
)


def test_forty_tokens_from_eighteen_cycles_are_twenty_one_derived_of_twenty_four_accepted() -> None:
    assert derived_accepted(tokens=40, requests=1, cycles=18) == 21
    # Three drafts were accepted past the stop: of 1 + 24/18 = 2.33 tokens a cycle, 2.17 came out.
    assert 1 + derived_accepted(40, 1, 18) / 18 == pytest.approx(39 / 18)


@given(histograms)
def test_without_stops_the_derived_accepted_drafts_are_the_accepted_ones(requests: list[list[int]]) -> None:
    cycles = sum(sum(h) for h in requests)
    accepted = sum(d * count for h in requests for d, count in enumerate(h))
    tokens = accepted + cycles + len(requests)
    assert derived_accepted(tokens, len(requests), cycles) == accepted


@pytest.mark.parametrize(
    ("length", "width", "expected"),
    [
        (2.0, 4, 1 / 3),
        (1.12, 6, 0.024),
        (1.0, 4, 0.0),
        (4.0, 4, 1.0),
        (2.0, 1, None),
        (4.5, 4, None),
        (0.9, 4, None),
    ],
)
def test_strict_acceptance_of_a_length(length: float, width: float, expected: float | None) -> None:
    assert strict_acceptance(length, width) == (None if expected is None else pytest.approx(expected))


@given(histograms)
def test_the_clustered_interval_holds_the_ratio(requests: list[list[int]]) -> None:
    x = np.array([sum(h) for h in requests], float)
    y = np.array([sum(d * count for d, count in enumerate(h)) for h in requests], float)
    sums = (x.sum(), y.sum(), (x * x).sum(), (x * y).sum(), (y * y).sum())
    ratio = clustered_ratio(len(x), sums)
    assert ratio.value == pytest.approx(y.sum() / x.sum())
    if len(x) > 1:
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low <= ratio.value + 1e-9  # type: ignore[operator]
        assert ratio.high >= ratio.value - 1e-9  # type: ignore[operator]
        assert "clustered by request" in ratio.method


def test_one_request_has_no_interval_and_none_has_no_ratio() -> None:
    assert clustered_ratio(1, (10, 5, 100, 50, 25)) == Ratio(0.5)
    assert clustered_ratio(0, (0, 0, 0, 0, 0)).value is None


def test_the_clustered_interval_covers_the_truth_about_95_times_of_100() -> None:
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(400):
        share = generator.beta(4, 4, 60)  # requests differ: drafts of one request are alike
        x = generator.integers(5, 40, 60).astype(float)
        y = generator.binomial(x.astype(int), share).astype(float)
        ratio = clustered_ratio(60, (x.sum(), y.sum(), (x * x).sum(), (x * y).sum(), (y * y).sum()))
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 0.5 <= ratio.high
    assert 0.90 <= hits / 400 <= 0.99


def test_the_bootstrap_covers_the_truth_when_scrapes_are_correlated() -> None:
    generator = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        drift = np.convolve(generator.normal(0, 0.1, 203), np.ones(4) / 2, "valid")
        x = generator.integers(50, 100, 200).astype(float)
        ratio = bootstrapped_ratio(x * (1.2 + drift), x)
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 1.2 <= ratio.high
    assert 0.85 <= hits / 200 <= 0.99


def test_the_bootstrap_is_the_same_when_read_twice_and_passes_over_gaps() -> None:
    y = np.array([2, NAN, 3, 4, 5, 2, 8, 1.0])
    x = np.array([1, 5, NAN, 2, 3, 1, 4, 0.0])
    first = bootstrapped_ratio(y, x)
    assert first == bootstrapped_ratio(y, x)
    assert first.value == pytest.approx((2 + 4 + 5 + 2 + 8) / (1 + 2 + 3 + 1 + 4))
    assert first.method.startswith("block bootstrap over scrapes")
    assert first.shifted(1.0).value == pytest.approx(1 + (first.value or 0))


def test_few_scrapes_have_no_interval_and_none_has_no_ratio() -> None:
    assert bootstrapped_ratio(np.array([2.0, 3.0]), np.array([1.0, 1.0])) == Ratio(2.5)
    assert bootstrapped_ratio(np.array([NAN]), np.array([NAN])).value is None


def test_idle_is_nothing_running_and_nothing_grown_and_a_gap_is_neither() -> None:
    running = np.array([2, 0, 0, NAN, NAN, NAN])
    growth = np.array([5, 0, 3, NAN, 0, 4])
    active, idle = active_buckets(running, growth, live_growth_known=True)
    assert active.tolist() == [True, False, True, False, False, True]
    assert idle.tolist() == [False, True, False, False, True, False]


def test_without_a_live_counter_unknown_running_requests_are_not_called_idle() -> None:
    active, idle = active_buckets(np.array([NAN]), np.array([0.0]), live_growth_known=False)
    assert (active.tolist(), idle.tolist()) == ([True], [False])


def test_running_requests_without_growth_are_active() -> None:
    active, _ = active_buckets(np.array([1.0]), np.array([0.0]), live_growth_known=True)
    assert active.tolist() == [True]


def test_time_weighting_takes_active_buckets_with_a_value_only() -> None:
    values = np.array([2.0, 4.0, NAN, 9.0])
    assert time_weighted(values, np.array([True, True, True, False])) == (3.0, 2)
    assert time_weighted(values, np.zeros(4, bool)) == (None, 0)


def test_sums_and_means_over_rows_keep_gaps() -> None:
    rows = [np.array([1.0, NAN, NAN]), np.array([3.0, 4.0, NAN])]
    np.testing.assert_array_equal(sum_over(rows, 3), [4, 4, NAN])
    np.testing.assert_array_equal(mean_over(rows, 3), [2, 4, NAN])
    assert np.isnan(sum_over([], 2)).all()
    assert np.isnan(mean_over([], 2)).all()


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(2, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_largest_length_behind_cut_output_is_never_below_the_true_one(
    alphas: list[float], tokens: int, seed: int
) -> None:
    """Requests of ``tokens`` output tokens, cut at their end: the bound holds, but for chance."""
    random = np.random.default_rng(seed)
    depth, requests = len(alphas), 400
    kept = np.cumprod(random.random((requests, tokens - 1, depth)) < alphas, axis=2).sum(axis=2) + 1
    cycles = (np.cumsum(kept, axis=1) < tokens - 1).sum(axis=1) + 1
    true_length = 1 + np.cumprod(alphas).sum()
    shown = requests * (tokens - 1) / cycles.sum()
    most = longest_unseen(shown, depth, cycles.sum() / requests)
    spread = depth / np.sqrt(cycles.sum())
    assert shown <= most <= depth + 1
    assert most >= true_length - 4 * spread
    assert longest_unseen(shown, depth, 1e9) == pytest.approx(shown, rel=1e-6), "long answers hide nothing"
