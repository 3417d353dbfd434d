"""What two totals can mean: the numbers of a team that compared totals, and laws of the calculator."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.client import Web

from specscope_server.boundaries import examples
from specscope_server.boundaries.schemas import Totals
from specscope_server.boundaries.totals import totals
from specscope_server.kit.errors import InvalidInput


@pytest.mark.parametrize(
    ("total", "tokens", "rms"),
    [(1.20, 6, 0.49), (10.0, 21, 2.18), (76.7, 6, 31.3), (3334.0, 21, 727.5)],
    ids=["0.49", "2.18", "31.3", "727"],
)
def test_a_total_is_an_rms_times_the_root_of_the_rows(total: float, tokens: int, rms: float) -> None:
    assert totals(total, tokens, 1.0, 1).a.rms_norm == pytest.approx(rms, rel=5e-3)


def test_one_row_explains_a_gap_of_23_times() -> None:
    found = totals(76.7, 6, 3334.0, 21, 7168, ("serving", "training"))
    assert found.rms_ratio == pytest.approx(23.2, rel=2e-3)
    assert found.sink_norm == pytest.approx(3331, rel=1e-3)
    assert found.sink_share == pytest.approx(0.998, abs=2e-3)
    assert found.lengths_alone == pytest.approx(math.sqrt(21 / 6))
    assert "one single row would explain all of it" in found.verdict
    assert "One row of norm 3331 beside 20 rows of 31.31 gives the whole total of training" in found.one_row
    assert any("position 0" in note for note in found.b.notes)


def test_alike_is_not_the_same() -> None:
    found = totals(10.0, 100, 20.0, 400)
    assert found.sink_norm is None
    assert "does not make them the same states" in found.verdict


numbers = st.floats(1e-3, 1e6)
counts = st.integers(1, 10_000)


@given(numbers, counts, numbers, counts)
def test_the_row_that_explains_the_gap_does(a: float, n: int, b: float, m: int) -> None:
    found = totals(a, n, b, m)
    assert found.rms_ratio == pytest.approx(found.total_ratio / found.lengths_alone)
    high = max((found.a, found.b), key=lambda side: side.rms_norm)
    low = min((found.a, found.b), key=lambda side: side.rms_norm)
    if found.sink_norm is not None:
        assert found.sink_norm <= high.largest_norm * (1 + 1e-9)
        rest = high.total**2 - found.sink_norm**2
        assert rest == pytest.approx((high.tokens - 1) * low.rms_norm**2, rel=1e-6, abs=1e-6 * high.total**2)
        assert found.sink_share is not None
        assert 0 < found.sink_share <= 1 + 1e-9


@given(numbers, counts, numbers, counts)
def test_sides_are_exchangeable(a: float, n: int, b: float, m: int) -> None:
    one, other = totals(a, n, b, m), totals(b, m, a, n)
    assert one.sink_norm == other.sink_norm
    assert one.rms_ratio == pytest.approx(1 / other.rms_ratio)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((math.inf, 1, 1.0, 1), "total_a=inf is no Frobenius norm"),
        ((1.0, 0, 1.0, 1), "tokens_a=0 is no number of rows"),
        ((1.0, 1, -2.0, 1), "total_b=-2 is no Frobenius norm"),
    ],
    ids=["infinite", "no rows", "negative"],
)
def test_impossible_totals_are_refused(values: tuple[float, int, float, int], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        totals(*values)


def test_over_rest(lone_web: Web) -> None:
    found = lone_web.api(
        "/drift/totals", total_a=76.7, tokens_a=6, total_b=3334, tokens_b=21, hidden_size=7168
    )
    assert Totals.model_validate(found).sink_factor == pytest.approx(106.4, rel=1e-2)
    answer = lone_web.get(
        "/api/v1/drift/totals", params={"total_a": 1, "tokens_a": 1, "total_b": 0, "tokens_b": 1}
    )
    assert answer.status_code == 422


def test_examples_are_of_the_schema() -> None:
    assert Totals.model_validate(examples.TOTALS).model_dump(mode="json") == examples.TOTALS
