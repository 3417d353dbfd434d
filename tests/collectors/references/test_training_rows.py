"""Files of whole training rows: what comes back, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.collectors.references.boundary_states import BOUNDARIES, HIDDEN, MadeUpModel, ids_of

from specscope_collectors.references.dtypes import BFLOAT16, as_bfloat16, as_float32
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.training_rows import RowsFile, read_rows


@given(hnp.arrays(np.float32, st.integers(0, 20), elements=st.floats(width=32)))
def test_bfloat16_is_the_nearest(values: np.ndarray) -> None:  # type: ignore[type-arg]
    back = as_float32(as_bfloat16(values), BFLOAT16)
    assert np.isnan(back[np.isnan(values)]).all()
    normal = np.isfinite(values) & (np.abs(values) > 1e-37) & (np.abs(values) < 3e38)
    assert (np.abs(back[normal] - values[normal]) <= np.abs(values[normal]) * 2.0**-8).all()
    np.testing.assert_array_equal(as_bfloat16(back[normal]), as_bfloat16(values[normal]))


def test_rows_come_back(tmp_path: Path) -> None:
    path, ids = tmp_path / "a.rows.npz", ids_of(1, 30)
    file, states = RowsFile(HIDDEN, BOUNDARIES), MadeUpModel().states(ids_of(1, 30), 1)
    file.add("rows_0-2000/data_0.pt", ids, np.array([0, 5, 29]), states[:, [0, 5, 29]])
    file.write(path)
    [found] = read_rows(path)
    assert (found.name, found.positions.tolist()) == ("rows_0-2000/data_0.pt", [0, 5, 29])
    np.testing.assert_array_equal(found.token_ids, ids)
    np.testing.assert_allclose(found.states, states[:, [0, 5, 29]], rtol=2**-8)
    assert [each.name for each in tmp_path.iterdir()] == ["a.rows.npz"]


def test_hostile_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.rows.npz"
    path.write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(DumpError, match="no file of training rows"):
        read_rows(path)
    np.savez(path, format=np.array([1, 2, 3]), names=np.array([object()]))
    with pytest.raises(DumpError, match="no file of training rows"):
        read_rows(path)
    file = RowsFile(HIDDEN, BOUNDARIES)
    file.add("a", np.arange(3), np.array([7]), np.zeros((BOUNDARIES, 1, HIDDEN), np.float32))
    file.write(path)
    with pytest.raises(DumpError, match="behind its end"):
        read_rows(path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"format": np.array(1)},
        {"format": np.array(["a", "b", "c"])},
        {"names": np.array(b"a")},
        {"names": np.array(["a"])},
        {"ids_0": np.array(5)},
        {"positions_0": np.array([0.5])},
        {"states_0": np.zeros((1, 1, 2), np.float32)},
    ],
    ids=["no vector", "no numbers", "one name", "text", "one id", "half a row", "other states"],
)
def test_arrays_of_another_form_are_refused(arrays: dict[str, Any], tmp_path: Path) -> None:
    good = {
        "format": np.array([1, 1, 2]), "names": np.array([b"a"]), "ids_0": np.arange(3),
        "positions_0": np.array([1]), "states_0": np.zeros((1, 1, 2), np.uint16),
    }  # fmt: skip
    np.savez(tmp_path / "a.rows.npz", **good)
    assert len(read_rows(tmp_path / "a.rows.npz")) == 1
    np.savez(tmp_path / "a.rows.npz", **{**good, **arrays})
    with pytest.raises(DumpError, match="no file of training rows"):
        read_rows(tmp_path / "a.rows.npz")


def test_members_that_are_no_arrays_or_lie_about_their_size_are_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(117) + b"\n"
    for content in (b"abc", b"\x93NUMPY\x01\x00v\x00" + header):
        with zipfile.ZipFile(tmp_path / "a.rows.npz", "w") as archive:
            archive.writestr("format.npy", content)
        with pytest.raises(DumpError, match="no file of training rows"):
            read_rows(tmp_path / "a.rows.npz")
