"""Which definition a printed rate has, by version and against the engine's own numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.acceptance.engine_rates import (
    Decision,
    Formula,
    decide,
    dilutes_with_prefill,
    formula_of_version,
    release_of,
    strict_equivalent,
)


def decision(version: str | None, length: float, rate: float, width: float | None) -> Decision:
    return decide(version, np.array([length, float("nan"), length]), np.array([rate, 0.9, rate]), width)


@pytest.mark.parametrize(
    ("version", "formula", "dilutes"),
    [
        ("0.4.6.post5", Formula.NONE, True),
        ("0.5.2", Formula.NONE, True),
        ("0.5.5", Formula.UNKNOWN, None),
        ("0.5.8", Formula.WITH_BONUS, False),
        ("0.5.8.post1", Formula.WITH_BONUS, False),
        ("0.5.10", Formula.UNKNOWN, False),
        ("0.5.15rc0", Formula.UNKNOWN, None),
        ("0.5.15", Formula.STRICT, False),
        ("0.5.23", Formula.STRICT, False),
        ("0.10.0", Formula.STRICT, False),
        ("main", Formula.UNKNOWN, None),
        (None, Formula.UNKNOWN, None),
    ],
)
def test_versions(version: str | None, formula: Formula, dilutes: bool | None) -> None:
    assert formula_of_version(version) is formula
    assert dilutes_with_prefill(version) is dilutes


def test_releases_compare_as_numbers() -> None:
    assert release_of("v0.5.15.post2+cu124") == (0, 5, 15)
    assert release_of("0.5.٣") is None


def test_length_2_with_rate_one_half_at_width_4_is_one_third_strict() -> None:
    found = decision("0.5.8", 2.0, 0.5, 4)
    assert found.formula is Formula.WITH_BONUS
    assert strict_equivalent(found.formula, 0.5, 4) == pytest.approx(1 / 3)


def test_nineteen_percent_at_width_6_is_two_percent_of_the_drafts() -> None:
    found = decision("0.5.8", 1.12, 0.19, 6)
    assert found.formula is Formula.WITH_BONUS
    assert strict_equivalent(found.formula, 1.12 / 6, 6) == pytest.approx(0.024)


def test_from_0_5_15_on_the_rate_is_strict() -> None:
    found = decision("0.5.23", 2.0, 1 / 3, 4)
    assert found.formula is Formula.STRICT
    assert strict_equivalent(found.formula, 1 / 3, 4) == pytest.approx(1 / 3)


@pytest.mark.parametrize("version", [None, "0.5.10", "0.5.2", "nightly"])
@pytest.mark.parametrize(("rate", "formula"), [(0.5, Formula.WITH_BONUS), (1 / 3, Formula.STRICT)])
def test_where_the_version_does_not_tell_the_numbers_decide(
    version: str | None, rate: float, formula: Formula
) -> None:
    assert decision(version, 2.0, rate, 4).formula is formula


def test_numbers_against_the_version_are_undetermined_not_reinterpreted() -> None:
    found = decision("0.5.15", 2.0, 0.5, 4)
    assert found.formula is None
    assert found.contradicts
    assert "contradict" in found.reason
    assert "they would fit τ/D" in found.reason


def test_numbers_that_fit_nothing_are_undetermined() -> None:
    found = decision(None, 2.0, 0.9, 4)
    assert (found.formula, found.contradicts) == (None, True)


def test_near_full_acceptance_both_definitions_agree_so_neither_is_chosen() -> None:
    found = decision(None, 3.99, 3.99 / 4, 4)
    assert (found.formula, found.contradicts) == (None, False)
    assert "fit both" in found.reason


def test_without_a_constant_width_the_version_is_believed_but_not_called_checked() -> None:
    found = decision("0.5.15", 2.0, 0.33, None)
    assert found.formula is Formula.STRICT
    assert "could not be checked" in found.reason
    assert decision(None, 2.0, 0.33, None).formula is None


def test_one_window_read_across_an_update_does_not_overturn_the_rest() -> None:
    length, rate = np.full(9, 2.0), np.full(9, 0.5)
    rate[4] = 0.9
    assert decide("0.5.8", length, rate, 4).formula is Formula.WITH_BONUS


@given(st.floats(1, 7), st.integers(2, 16))
def test_the_strict_equivalent_of_the_old_rate_is_the_strict_rate(length: float, width: int) -> None:
    if length > width:
        assert strict_equivalent(Formula.WITH_BONUS, length / width, width) is None or length - width < 1e-6
        return
    strict = strict_equivalent(Formula.WITH_BONUS, length / width, width)
    assert strict == pytest.approx((length - 1) / (width - 1), abs=1e-9)


@pytest.mark.parametrize("width", [None, 1, 0])
def test_no_equivalent_without_a_width(width: float | None) -> None:
    assert strict_equivalent(Formula.WITH_BONUS, 0.5, width) is None
    assert strict_equivalent(None, 0.5, 4) is None


@pytest.mark.parametrize(
    ("depth", "formula"), [(6, Formula.WITH_BONUS), (6, Formula.STRICT), (4, Formula.STRICT)]
)
def test_a_log_without_a_dump_is_decided_by_any_whole_depth(depth: int, formula: Formula) -> None:
    lengths = np.array([1.12, 1.4, 1.87, 2.31, 2.64, 3.05])
    least, width = (0, depth) if formula is Formula.WITH_BONUS else (1, depth - 1)
    found = decide(None, lengths, np.round((lengths - least) / width, 2), None)
    assert found.formula is formula
    assert f"D = {depth}" in found.reason


def test_numbers_that_fit_both_or_neither_decide_nothing_without_a_depth() -> None:
    alone = decide(None, np.array([2.0]), np.array([0.5]), None)
    assert (alone.formula, "both definitions" in alone.reason) == (None, True)
    once = decide(None, np.array([2.5, 2.5]), np.array([0.3, 0.3]), None)
    assert (once.formula, "too few" in once.reason) == (None, True)
    wild = decide(None, np.array([1.5, 2.0, 2.5]), np.array([0.9, 0.1, 0.5]), None)
    assert (wild.formula, "neither definition" in wild.reason) == (None, True)
