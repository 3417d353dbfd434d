"""Mirrors are dropped, data-parallel ranks are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.kit.ranks import homes, leaders, rank_number


def labels(**ranks: int) -> dict[str, str]:
    return {"model_name": "llama", **{f"{name}_rank": str(number) for name, number in ranks.items()}}


def test_of_mirrors_the_lowest_pipeline_and_tensor_rank_counts() -> None:
    series = [(f"{pp}.{tp}", labels(pp=pp, tp=tp)) for pp in (1, 0) for tp in (3, 0, 1)]
    assert leaders(series) == ["0.0"]


def test_each_data_parallel_rank_has_its_own_leader() -> None:
    series = [(f"dp{dp} tp{tp}", labels(dp=dp, tp=tp)) for dp in (0, 1) for tp in (4 * dp + 1, 4 * dp)]
    assert leaders(series) == ["dp0 tp0", "dp1 tp4"]


def test_other_labels_tell_series_apart() -> None:
    series = [(mode, {**labels(tp=0), "mode": mode}) for mode in ("decode", "prefill")]
    assert leaders(series) == ["decode", "prefill"]


def test_rank_ten_is_not_before_rank_two() -> None:
    assert leaders([("ten", labels(tp=10)), ("two", labels(tp=2))]) == ["two"]


@given(st.permutations([(dp, pp, tp) for dp in range(3) for pp in range(2) for tp in range(2)]))
def test_the_choice_does_not_depend_on_the_order(order: list[tuple[int, int, int]]) -> None:
    chosen = leaders(((dp, pp, tp), labels(dp=dp, pp=pp, tp=tp)) for dp, pp, tp in order)
    assert sorted(chosen) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]


@pytest.mark.parametrize("text", ["x", "-1", "٣", "9" * 12, ""])
def test_a_rank_that_is_no_number_counts_as_zero(text: str) -> None:
    assert rank_number({"tp_rank": text}, "tp_rank") == 0


def test_labels_that_fit_several_schedulers_are_taken_for_none_of_them() -> None:
    plain, one, other = (
        (("model_name", "m"),),
        (("dp_rank", "0"), ("model_name", "m")),
        (("dp_rank", "1"), ("model_name", "m")),
    )
    assert homes([plain, one]) == {plain: one, one: one}
    assert homes([plain, one, other])[plain] == plain
