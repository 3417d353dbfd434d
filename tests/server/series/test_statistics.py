"""Combining series and quantiles of histograms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.series.statistics import combine, histogram_quantile

NAN = float("nan")
A, B = np.array([1.0, 2.0, NAN, NAN]), np.array([3.0, 2.0, 4.0, NAN])


@pytest.mark.parametrize(
    ("how", "expected"),
    [("sum", [4, 4, 4, NAN]), ("mean", [2, 2, 4, NAN]), ("max", [3, 2, 4, NAN]), ("same", [NAN, 2, 4, NAN])],
)
def test_combine(how: str, expected: list[float]) -> None:
    np.testing.assert_array_equal(combine([A, B], how), expected)


def test_one_series_stays_as_it_is() -> None:
    np.testing.assert_array_equal(combine([A], "sum"), A)


def test_quantiles_are_linear_inside_a_bucket() -> None:
    counts = np.array([[0, 10, 0, 0], [5, 5, 0, 0], [0, 0, 0, 7], [0, 0, 0, 0]], float)
    found = histogram_quantile(0.5, (0.1, 0.2, 0.4), counts)
    np.testing.assert_allclose(found, [0.15, 0.1, 0.4, NAN])


@given(st.lists(st.integers(0, 50), min_size=5, max_size=5).filter(any), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_and_stay_within_the_bounds(row: list[int], q1: float, q2: float) -> None:
    bounds, counts = (0.1, 0.2, 0.5, 1.0), np.array([row], float)
    low, high = (float(histogram_quantile(q, bounds, counts)[0]) for q in sorted((q1, q2)))
    assert 0 <= low <= high <= 1.0


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=60), st.sampled_from([0.1, 0.5, 0.9, 0.99]))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values: list[float], q: float) -> None:
    bounds = (0.1, 0.25, 0.5, 1.0)
    places = np.searchsorted(bounds, values, side="left")
    counts = np.array([np.bincount(places, minlength=5)], float)
    true = float(np.quantile(values, q, method="inverted_cdf"))
    place = int(np.searchsorted(bounds, true, side="left"))
    edges = (0.0, *bounds)
    found = float(histogram_quantile(q, bounds, counts)[0])
    assert edges[place] - 1e-9 <= found <= edges[place + 1] + 1e-9
