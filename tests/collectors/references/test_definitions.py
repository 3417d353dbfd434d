"""A reference and serving speak of the same: projection, sketches, sinks and comparisons are the probe's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from specscope_collectors.references import projection, row_classes
from specscope_collectors.references.profiles import compared
from specscope_collectors.references.sums import COMPARED_ROWS, States, Table
from specscope_probe.states import invariants, rows, samples, sketch
from specscope_probe.states import projection as probe_projection

Floats = np.ndarray[Any, np.dtype[np.float32]]


@pytest.mark.parametrize("hidden_size", [1, 16, 513, 1024])
def test_the_projection_is_the_probes_to_the_bit(hidden_size: int) -> None:
    theirs = probe_projection.matrix(hidden_size)
    assert projection.NAME == probe_projection.NAME
    np.testing.assert_array_equal(projection.projection_of(hidden_size), theirs)
    np.testing.assert_array_equal(projection.projection_of(hidden_size, 16), theirs[:, :16])


def test_classes_and_constants_are_the_probes() -> None:
    assert (row_classes.HEAD, row_classes.SINK, row_classes.OTHER) == samples.ROW_CLASSES
    assert row_classes.HEAD_POSITIONS == rows.HEAD
    assert row_classes.BIN_WIDTH == sketch.BIN_WIDTH
    assert (row_classes.ENOUGH_ROWS, row_classes.DEVIATIONS) == (sketch.ENOUGH_ROWS, sketch.DEVIATIONS)


@given(
    hnp.arrays(
        np.float32, st.integers(0, 600), elements=st.floats(-30, 30, width=32) | st.just(float("-inf"))
    )
)
def test_sketches_and_limits_are_the_probes(ln_norms: Floats) -> None:
    finite = ln_norms[np.isfinite(ln_norms)]
    theirs = sketch.NormSketch()
    theirs.add(finite)
    mine = row_classes.sketch_of(ln_norms)
    assert {str(place): count for place, count in mine.bins.items()} == theirs.described()["bins"]
    assert mine.sum == pytest.approx(theirs.described()["sum"])
    assert mine.minimum == theirs.described()["minimum"]
    assert row_classes.sink_limit(ln_norms) == sketch.sink_limit(theirs.bins, len(ln_norms))


@given(st.integers(0, 2**32 - 1), st.integers(2, 60))
def test_rows_are_compared_as_the_probe_compares_them(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    states = random.normal(size=(5, 8)).astype(np.float32)[random.integers(0, 5, count)]
    ids, positions = random.integers(0, 4, count), random.integers(4, 9, count)
    found_states = States(states.copy())
    ln_norms, sketches = found_states.ln_norms, found_states.projected(projection.projection_of(8, 16))
    theirs = invariants.Comparison()
    for part in np.array_split(np.arange(count), 3):
        theirs.add(ids[part], positions[part], sketches[part], ln_norms[part])
    table = Table()
    table.add(count, sketch_0=sketches, ln_norm_0=ln_norms, id=ids, position=positions)
    assert count < COMPARED_ROWS
    found = compared(table, 0, np.arange(count))
    assert found == {name: theirs.counts[name] for name in found}


@given(hnp.arrays(np.float32, (7, 5), elements=st.floats(-100, 100, width=32)))
def test_directions_have_length_one_or_nought(states: Floats) -> None:
    found = States(states.copy())
    ln_norms = found.ln_norms
    lengths = np.linalg.norm(found.projected(np.eye(5, dtype=np.float32)), axis=1)
    np.testing.assert_allclose(lengths[np.isfinite(ln_norms)], 1, rtol=1e-5)
    assert not lengths[~np.isfinite(ln_norms)].any()
