"""How sure it is that speculation pays: from τ and break-even, as far as either is known."""

from __future__ import annotations

import pytest

from specscope_server.acceptance.statistics import Ratio
from specscope_server.timing.timed_numbers import OF_LENGTH_ALONE, times_faster


def test_both_intervals_count() -> None:
    found = times_faster(Ratio(2.2, 2.1, 2.3), Ratio(2.0, 1.9, 2.1))
    assert found.value == pytest.approx(1.1)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 2.1 / 2.0 < 2.3 / 2.0 < found.high


def test_of_few_requests_the_interval_of_the_length_holds_where_cycles_tell_none() -> None:
    found = times_faster(Ratio(1.65, 0.0, 2.42), Ratio(2.15))  # a quiet morning: seven requests
    assert (found.value, found.low, found.high, found.method) == (
        pytest.approx(0.767, abs=0.001), 0.0, pytest.approx(1.126, abs=0.001), OF_LENGTH_ALONE,
    )  # fmt: skip


def test_a_length_that_may_be_nothing_has_an_interval_too() -> None:
    found = times_faster(Ratio(1.65, 0.0, 2.42), Ratio(2.15, 2.1, 2.2))
    assert (found.low, found.high) == (0.0, pytest.approx(1.126, abs=0.001))


@pytest.mark.parametrize("even", [Ratio(2.0), Ratio(2.0, 1.9, 2.1)])
@pytest.mark.parametrize("length", [Ratio(2.2), Ratio(2.2, 2.1)])
def test_without_an_interval_of_the_length_there_is_none(length: Ratio, even: Ratio) -> None:
    found = times_faster(length, even)
    assert (found.value, found.low, found.high) == (pytest.approx(1.1), None, None)


@pytest.mark.parametrize(("length", "even"), [(Ratio(None), Ratio(2.0)), (Ratio(2.2), Ratio(None))])
def test_what_is_not_known_has_no_quotient(length: Ratio, even: Ratio) -> None:
    assert times_faster(length, even) == Ratio(None)
