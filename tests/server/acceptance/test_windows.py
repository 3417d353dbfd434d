"""How finely windows are read: as finely as scrapes, but never without bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.acceptance.windows import (
    MAX_FINE,
    fine_window,
    group_any,
    group_mean,
    group_sum,
    most_buckets,
    refine,
)
from specscope_server.kit.timeparse import nice_step_ms, window_of
from specscope_server.models import Launch

HOUR_MS = 3_600_000
T0 = 1_772_366_400_000


def test_a_server_that_restarts_all_the_time_is_read_more_coarsely() -> None:
    assert most_buckets([]) == most_buckets([Launch(dp_size=None)]) == MAX_FINE
    assert most_buckets([Launch(dp_size=8)]) == MAX_FINE
    assert most_buckets([Launch(dp_size=1)] * 50) == 2_000
    assert most_buckets([Launch(dp_size=1)] * 5_000) == 300
    assert fine_window(T0, T0 + 6 * HOUR_MS, 5_000).step_ms == 2_500
    assert fine_window(T0, T0 + 6 * HOUR_MS, 5_000, 2_000).step_ms == 10_800
    assert fine_window(T0, T0 + 6 * HOUR_MS, 5_000, 300).step_ms == 600_000


@given(st.integers(1, 5 * 365 * 24 * HOUR_MS), st.integers(100, 3_600_000), st.integers(300, MAX_FINE))
def test_a_window_never_has_more_buckets_than_it_may(span_ms: int, interval_ms: int, most: int) -> None:
    window = fine_window(T0, T0 + span_ms, interval_ms, most)
    assert window.from_ms <= T0 < window.from_ms + window.step_ms
    assert window.buckets <= most + 1


@given(st.integers(1_000, 400 * 24 * HOUR_MS), st.integers(1, 3_000), st.integers(100, 60_000))
def test_fine_buckets_fill_those_that_are_shown(span_ms: int, points: int, interval_ms: int) -> None:
    window = window_of(T0, T0 + span_ms, nice_step_ms(span_ms, points))
    fine, parts = refine(window, interval_ms)
    assert (fine.from_ms, fine.to_ms, fine.step_ms * parts) == (window.from_ms, window.to_ms, window.step_ms)
    assert len(group_sum(np.zeros(fine.buckets), parts)) == window.buckets


def test_gathering_keeps_what_was_not_observed_apart_from_zero() -> None:
    values = np.array([1.0, np.nan, np.nan, np.nan, 0.0, 3.0, 5.0])
    assert group_sum(values, 2) == pytest.approx([1.0, np.nan, 3.0, 5.0], nan_ok=True)
    assert group_mean(values, 2) == pytest.approx([1.0, np.nan, 1.5, 5.0], nan_ok=True)
    assert group_any(np.array([True, False, False, False, True]), 2).tolist() == [True, False, True]
