"""Unions of intervals against a plain reckoning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors.traces.intervals import extents, union_lengths

ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 3)), max_size=40)


@given(ROWS, st.sampled_from([0.0, 5e12]))
def test_unions_are_those_of_a_plain_reckoning(rows: list[tuple[int, int, int]], clock: float) -> None:
    start = np.array([row[0] for row in rows], dtype=np.float64) + clock
    end = start + np.array([row[1] for row in rows], dtype=np.float64)
    group = np.array([row[2] for row in rows], dtype=np.int64)
    expected = [
        len({tick for first, length, of in rows if of == number for tick in range(first, first + length)})
        for number in range(4)
    ]
    assert union_lengths(start, end, group, 4) == pytest.approx(expected, abs=0.01)
    low, high = extents(start, end, group, 4)
    for number in range(4):
        own = [row for row in rows if row[2] == number]
        if own:
            assert low[number] == min(row[0] for row in own) + clock
            assert high[number] == max(row[0] + row[1] for row in own) + clock
        else:
            assert not np.isfinite(low[number])
