"""Rows are copied out of a file, not through its map: they are what that shows; a cut file is refused."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.dumps import T, tensor, torch_bytes, write

from specscope_collectors.references import contents
from specscope_collectors.references.building import Building, Order
from specscope_collectors.references.contents import Content, Memory
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.opening import open_dump
from specscope_collectors.references.reading import ln_norms_of_rows, places_of_states, states_of
from specscope_collectors.references.shapes import classify
from specscope_collectors.references.sums import States
from specscope_collectors.references.tensors import floats

BYTES = 1 << 15
TYPES = ("<u2", "<f4", "<f8")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    path = tmp_path_factory.mktemp("contents") / "noise"
    path.write_bytes(np.random.default_rng(1).bytes(BYTES))
    with path.open("rb") as file:
        return Content(file.fileno())


@st.composite
def views(draw: st.DrawFn) -> tuple[int, str, tuple[int, int], tuple[int, int]]:
    """Draw (offset, type, shape, strides in elements) of views within the file: overlapping, transposed, …"""
    dtype = draw(st.sampled_from(TYPES))
    size = np.dtype(dtype).itemsize
    shape = draw(st.tuples(st.integers(1, 40), st.integers(1, 24)))
    strides = draw(
        st.sampled_from([(shape[1], 1), (3 * shape[1], 1), (1, shape[0]), (0, 1), (1, 1), (2 * shape[1], 2)])
    )
    reach = sum((count - 1) * step for count, step in zip(shape, strides, strict=True)) + 1
    offset = draw(st.integers(0, BYTES - reach * size))
    return offset, dtype, shape, strides


@given(st.lists(views(), min_size=1, max_size=4), st.data())
def test_rows_of_any_layout_are_what_the_map_shows(
    content: Content, drawn: list[tuple[int, str, tuple[int, int], tuple[int, int]]], data: st.DataObject
) -> None:
    made: list[NDArray[Any]] = [
        np.ndarray(
            shape, dtype, content.mapped, offset, [step * np.dtype(dtype).itemsize for step in strides]
        )
        for offset, dtype, shape, strides in drawn
    ]
    least = min(len(raw) for raw in made)
    rows = np.array(data.draw(st.lists(st.integers(0, least - 1), max_size=30)), np.int64)
    at_once, is_asked_for = data.draw(st.integers(1, 9)), data.draw(st.booleans())
    memory = Memory()
    for raw, read in zip(made, content.read(made, rows, memory, is_asked_for=is_asked_for), strict=True):
        assert read.tobytes() == raw[rows].tobytes()
    parts = content.read_some(made, rows, memory, at_once, is_asked_for=is_asked_for)
    joined = [
        b"".join(pieces) for pieces in zip(*([raw.tobytes() for raw in part] for part in parts), strict=True)
    ]
    assert joined == [raw[rows].tobytes() for raw in made]


@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 1 << 16)), max_size=20),
    st.integers(0, 1 << 17),
)
def test_what_is_asked_for_covers_every_piece_and_little_else(
    places: list[tuple[int, int]], near: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "NEAR_BYTES", near)
        asked = contents._joined([(start, start + length) for start, length in places])
    for start, length in places:
        assert any(begin <= start and start + length <= begin + size for begin, size in asked)
    assert all(begin + size + near < later for (begin, size), (later, _) in pairwise(asked))
    assert {begin for begin, _ in asked} <= {start for start, _ in places}
    assert {begin + size for begin, size in asked} <= {start + length for start, length in places}


def sample(kind: str, tokens: int = 50, width: int = 96) -> bytes:
    """Return a file in which states lie in one of the ways that writers use."""
    random = np.random.default_rng(7)
    states = random.standard_normal((4, tokens, width)) * 3.0
    states[1, 5], states[2, 6, 3] = 0.0, np.inf
    ids = {"input_ids": tensor(np.arange(7, 7 + tokens))}
    if kind == "list":
        return torch_bytes(ids | {"hidden_states": [tensor(each) for each in states]})
    if kind == "concatenated":
        three = np.concatenate(states[:3], axis=1)[None]
        return torch_bytes(ids | {"aux_hidden_state": tensor(three), "hidden_state": tensor(states[3:])})
    big = tensor(np.ascontiguousarray(states.transpose(1, 0, 2)))
    slices = [T(big.storage, big.dtype, layer * width, (tokens, width), (4 * width, 1)) for layer in range(4)]
    if kind == "sliced":
        return torch_bytes(ids | {"hidden_states": slices})
    across = tensor(np.ascontiguousarray(states.transpose(0, 2, 1)))
    apart = [
        T(across.storage, across.dtype, layer * width * tokens, (tokens, width), (1, tokens))
        for layer in range(4)
    ]
    return torch_bytes(ids | {"hidden_states": apart})


@pytest.mark.parametrize("kind", ["list", "concatenated", "sliced", "transposed"])
@pytest.mark.parametrize("packed", [False, True])
def test_states_and_norms_are_those_of_the_plain_reading(kind: str, packed: bool, tmp_path: Path) -> None:
    content = gzip.compress(sample(kind), mtime=0) if packed else sample(kind)
    opened = open_dump(write(tmp_path / "data_0.pt", content))
    found, rows = (
        classify(opened),
        np.array([0, 1, 5, 6, 7, 20, 21, 22, 23, 40, 41, 42, 43, 44, 45, 46, 47, 49]),
    )
    plain = [floats(state.raw, state.dtype, rows) for state in places_of_states(found)]
    assert len(plain) == 4
    assert [each.tobytes() for each in states_of(opened, found, rows)] == [each.tobytes() for each in plain]
    norms = ln_norms_of_rows(opened, found, rows)
    assert [each.tobytes() for each in norms] == [States(each).ln_norms.tobytes() for each in plain]


def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "data_0.pt", sample("list", 400, 512))
    opened = open_dump(path)
    found, rows = classify(opened), np.arange(64)
    assert len(list(states_of(opened, found, rows))) == 4
    os.truncate(path, path.stat().st_size // 2)
    for read in (states_of, ln_norms_of_rows):
        with pytest.raises(DumpError, match=r"data_0\.pt: it was cut off at byte \d+ while it was read"):
            read(opened, found, rows)
    without_last = replace(found, slots=found.slots[:1], last=None)
    assert len(list(states_of(opened, without_last, rows))) == 1, "what is there is read"


def test_a_file_that_is_cut_while_it_is_read_is_left_out_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write(tmp_path / f"data_{number}.pt", sample("list", 400, 512))
    building = Building(Order(root=tmp_path, name="cut", made_ms=1))
    opening = building._ahead.open

    def opened_then_cut(number: int) -> Any:
        opened = opening(number)
        if opened[0].path.name == "data_1.pt":
            os.truncate(opened[0].path, opened[0].file_bytes // 2)
        return opened

    monkeypatch.setattr(building._ahead, "open", opened_then_cut)
    reference = building.run()
    assert (reference.requests, reference.rows) == (2, 128)
    assert any("cut off at byte" in reason for reason in building._refused.counts)


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    path = write(tmp_path / "data_0.pt", sample("list"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        open_dump(path)
    assert len(os.listdir("/proc/self/fd")) == before
