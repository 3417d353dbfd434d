"""The arithmetic of cycle times, against its definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.acceptance.statistics import Ratio
from specscope_server.timing.same_batch import weighted_mean
from specscope_server.timing.statistics import (
    BATCH_BUCKETS,
    acceptance_ceiling,
    batch_bucket,
    bucket_place,
    chain_length,
    constant_alpha,
    expected_experts,
    faster_rate,
    length_of,
    per_cycle_ms,
    rejected_share,
    relative_change,
)

times = st.floats(0.1, 1_000)


@given(st.floats(0, 1), st.integers(1, 12))
def test_the_one_alpha_is_the_inverse_of_the_chains_length(alpha: float, steps: int) -> None:
    length = chain_length(alpha, steps)
    found = constant_alpha(length, steps)
    assert found is not None
    assert chain_length(found, steps) == pytest.approx(length, abs=1e-6)
    assert length_of([alpha] * steps) == pytest.approx(length)


@pytest.mark.parametrize(("length", "steps"), [(0.9, 3), (4.1, 3), (2.0, 0)])
def test_a_length_that_cannot_be_has_no_alpha(length: float, steps: int) -> None:
    assert constant_alpha(length, steps) is None


@given(times, times)
def test_less_time_per_cycle_is_as_many_tokens_in_less_time(active: float, saved: float) -> None:
    found = faster_rate(100.0, active, saved)
    if saved >= active:
        assert found is None
    else:
        assert found is not None
        assert found * (active - saved) == pytest.approx(100.0 * active)


def test_distinct_experts_of_a_large_mixture() -> None:
    """Kimi-K2: 384 experts, 8 a token."""
    found = [expected_experts(tokens, 384, 8) for tokens in (1, 2, 3, 4, 6)]
    assert found == [pytest.approx(value, abs=0.05) for value in (8, 15.8, 23.5, 31.0, 45.6)]


@given(st.integers(1, 384), st.floats(1, 10_000))
def test_there_are_no_more_experts_than_there_are(per_token: int, tokens: float) -> None:
    found = expected_experts(tokens, 384, per_token)
    assert per_token - 1e-9 <= found <= 384 + 1e-9
    assert found <= per_token * tokens + 1e-6


@pytest.mark.parametrize(
    ("requests", "bucket"),
    [(0.2, "1"), (1, "1"), (2, "2"), (2.6, "3-4"), (4, "3-4"), (5, "5-8"), (256, "129-256"), (9e9, "257+")],
)
def test_batches_stand_in_powers_of_two(requests: float, bucket: str) -> None:
    assert batch_bucket(requests) == bucket


def test_an_unknown_bucket_stands_last() -> None:
    assert sorted(["more", "257+", "1"], key=bucket_place) == ["1", "257+", "more"]
    assert [bucket_place(bucket) for bucket in BATCH_BUCKETS] == list(range(len(BATCH_BUCKETS)))


def test_rejected_tokens_and_the_ceiling_of_a_width() -> None:
    assert rejected_share(2.5, 4) == pytest.approx(1.5 / 4)
    assert rejected_share(4.0, 4) == 0
    assert rejected_share(4.2, 4) is None
    assert acceptance_ceiling(3, 4) == 1
    assert acceptance_ceiling(5, 64) == pytest.approx(5 / 63)
    assert acceptance_ceiling(0, 1) is None


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0.001, 0.1)), min_size=5, max_size=60))
def test_a_time_per_cycle_weighs_by_cycles(scrapes: list[tuple[int, float]]) -> None:
    cycles = np.array([float(count) for count, _ in scrapes])
    seconds = np.array([count * each for count, each in scrapes])
    found = per_cycle_ms(seconds, cycles)
    assert found.value == pytest.approx(1_000 * seconds.sum() / cycles.sum())
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value + 1e-9
    assert found.high >= found.value - 1e-9


def test_no_cycles_have_no_time() -> None:
    nothing = np.array([np.nan, 0.0])
    assert per_cycle_ms(np.array([np.nan, 0.0]), nothing).value is None


@given(times, times, st.floats(1.01, 1.5), st.floats(1.01, 1.5))
def test_a_change_and_its_reverse_cancel(a: float, b: float, wide: float, wider: float) -> None:
    before = Ratio(a, a / wide, a * wide)
    after = Ratio(b, b / wider, b * wider)
    there, back = relative_change(before, after), relative_change(after, before)
    assert there.value is not None
    assert back.value is not None
    assert (1 + there.value) * (1 + back.value) == pytest.approx(1)
    assert there.low is not None
    assert there.high is not None
    half = math.hypot(math.log(wide), math.log(wider))
    assert math.log((1 + there.high) / (1 + there.value)) == pytest.approx(half)
    assert math.log((1 + there.value) / (1 + there.low)) == pytest.approx(half)


@pytest.mark.parametrize("missing", [Ratio(None), Ratio(0.0)])
def test_there_is_no_change_from_nothing(missing: Ratio) -> None:
    assert relative_change(missing, Ratio(2.0)).value is None
    assert relative_change(Ratio(2.0), missing).value is None


def test_the_interval_of_a_change_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        sides = []
        for mean in (0.040, 0.030):
            cycles = rng.integers(80, 120, 30).astype(np.float64)
            sides.append(per_cycle_ms(cycles * rng.normal(mean, 0.15 * mean, 30), cycles))
        found = relative_change(sides[0], sides[1])
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= -0.25 <= found.high
    assert 0.90 <= hits / 200 <= 0.99


def test_a_weighted_mean_keeps_no_interval_that_a_part_lacks() -> None:
    both = weighted_mean([Ratio(1.0, 0.9, 1.1), Ratio(3.0, 2.8, 3.2)], [1, 3])
    assert both.value == pytest.approx(2.5)
    assert both.high == pytest.approx(2.5 + math.hypot(0.1 / 4, 0.6 / 4))
    assert weighted_mean([Ratio(1.0, 0.9, 1.1), Ratio(3.0)], [1, 3]).low is None
    assert weighted_mean([Ratio(None)], [1]).value is None
