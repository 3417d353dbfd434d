"""Survival and conditional acceptance: worked by hand, bounded, and adding up to τ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.acceptance.survival import length_classes, positions_of, request_lengths

HISTOGRAMS = st.integers(1, 6).flatmap(
    lambda depth: st.lists(
        st.lists(st.integers(0, 30), min_size=depth + 1, max_size=depth + 1).filter(any),
        min_size=1,
        max_size=20,
    )
)


def test_one_request_worked_by_hand() -> None:
    found = positions_of(np.array([[6, 0, 3, 4]]))
    assert [(p.position, p.offered, p.accepted) for p in found] == [(1, 13, 7), (2, 7, 7), (3, 7, 4)]
    assert [p.survival.value for p in found] == pytest.approx([7 / 13, 7 / 13, 4 / 13])
    assert [p.conditional.value for p in found] == pytest.approx([7 / 13, 1.0, 4 / 7])
    assert all(p.survival.low is None for p in found)


def test_a_position_that_was_never_offered_is_unknown_not_zero() -> None:
    found = positions_of(np.array([[5, 0, 0], [7, 0, 0]]))
    assert found[0].conditional.value == 0.0
    assert (found[1].offered, found[1].conditional.value, found[1].survival.value) == (0, None, 0.0)


def test_requests_that_differ_widen_the_interval_though_cycles_are_many() -> None:
    alike = positions_of(np.array([[50, 50]] * 40))[0].survival
    apart = positions_of(np.array([[100, 0], [0, 100]] * 20))[0].survival
    assert alike.value == apart.value == 0.5
    assert alike.high == alike.low == 0.5
    assert apart.low is not None
    assert apart.high is not None
    assert apart.high - apart.low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(39), rel=1e-6)
    assert "clustered by request" in apart.method


@given(HISTOGRAMS)
def test_laws_of_survival(histograms: list[list[int]]) -> None:
    matrix = np.array(histograms)
    found = positions_of(matrix)
    cycles, drafts = matrix.sum(), (matrix @ np.arange(matrix.shape[1])).sum()
    survival = [p.survival.value or 0.0 for p in found]
    assert 1 + sum(survival) == pytest.approx(1 + drafts / cycles)
    assert survival == sorted(survival, reverse=True)
    product = 1.0
    for p in found:
        assert cycles == p.cycles >= p.offered >= p.accepted
        product *= p.conditional.value or 0.0
        assert product == pytest.approx(p.survival.value)
        for share in (p.survival, p.conditional):
            if share.low is not None and share.high is not None and share.value is not None:
                assert 0 <= share.low <= share.value + 1e-12
                assert share.value - 1e-12 <= share.high <= 1


@given(HISTOGRAMS)
def test_every_request_falls_into_one_class_of_lengths(histograms: list[list[int]]) -> None:
    matrix = np.array(histograms)
    lengths = request_lengths(matrix)
    depth = matrix.shape[1] - 1
    bounds, counts = length_classes(lengths, depth)
    assert (bounds[0], bounds[-1], sum(counts)) == (1.0, depth + 1.0, len(histograms))
    assert counts[-1] == int((lengths > depth + 1 - 1e-9).sum())
    assert counts[0] == int((lengths < 1.25 - 1e-9).sum())
