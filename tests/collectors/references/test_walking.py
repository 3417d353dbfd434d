"""The files of a dump: order, decoration, and what a wrong path is told."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.dumps import write

from specscope_collectors.references.choosing import choose_files, choose_rows
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.opening import open_dump
from specscope_collectors.references.walking import check_exists, files_of, in_order, listing


def tree(root: Path, *names: str) -> Path:
    """Write files with these names."""
    for name in names:
        write(root / name, b"x")
    return root


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    tree(
        tmp_path, "rows_10000-12000/data_10000.ckpt", "rows_2000-4000/data_2000.ckpt",
        "rows_0-2000/data_10.ckpt", "rows_0-2000/data_9.ckpt", "rows_8000-9137/data_9136.ckpt.gz",
        "1/data_0.ckpt", "hs_3.safetensors.zst",
    )  # fmt: skip
    assert files_of(tmp_path) == [
        "1/data_0.ckpt", "hs_3.safetensors.zst", "rows_0-2000/data_9.ckpt", "rows_0-2000/data_10.ckpt",
        "rows_2000-4000/data_2000.ckpt", "rows_8000-9137/data_9136.ckpt.gz",
        "rows_10000-12000/data_10000.ckpt",
    ]  # fmt: skip


def test_a_guessed_folder_is_told_what_there_is(tmp_path: Path) -> None:
    tree(tmp_path, *(f"rows_{n}-{n + 2000}/data_0.pt" for n in range(0, 24_000, 2000)), "data_config.json")
    with pytest.raises(DumpError) as caught:
        check_exists(tmp_path / "rows_00000" / "data_0.pt")
    words = str(caught.value)
    assert "rows_00000/data_0.pt is not there" in words
    assert f"in {tmp_path} there is data_config.json, rows_0-2000/, rows_2000-4000/, rows_4000-6000/" in words
    assert words.endswith("and 5 more")


def test_a_folder_without_a_dump_is_told_what_it_holds(tmp_path: Path) -> None:
    empty = tmp_path.parent / f"{tmp_path.name}-empty"
    empty.mkdir()
    tree(tmp_path, "notes.txt", "data-00000.arrow")
    with pytest.raises(DumpError, match=r"holds no file of a dump.*it has data-00000\.arrow, notes\.txt"):
        files_of(tmp_path)
    with pytest.raises(DumpError, match="it has nothing"):
        files_of(empty)


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, "a/data_0.pt")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "data_1.pt").symlink_to(tmp_path / "a" / "data_0.pt")
    assert files_of(tmp_path) == ["a/data_0.pt", "a/data_1.pt"]


def test_a_link_to_itself_is_refused_as_a_file_and_ends_nothing(tmp_path: Path) -> None:
    tree(tmp_path, "a/data_0.pt")
    (tmp_path / "a" / "data_1.pt").symlink_to("data_1.pt")
    assert files_of(tmp_path) == ["a/data_0.pt", "a/data_1.pt"]
    assert listing(tmp_path / "a") == "data_0.pt, data_1.pt"
    with pytest.raises(DumpError, match=r"data_1\.pt cannot be read: .*symbolic links"):
        open_dump(tmp_path / "a" / "data_1.pt")
    with pytest.raises(DumpError, match="a link that leads to no file"):
        check_exists(tmp_path / "a" / "data_1.pt")


@given(st.lists(st.integers(0, 10**30), min_size=1, unique=True))
def test_numbers_of_any_size_are_ordered(numbers: list[int]) -> None:
    names = [f"rows_{number}/x" for number in numbers]
    assert in_order(names) == [f"rows_{number}/x" for number in sorted(numbers)]


@given(st.lists(st.text(max_size=20)))
def test_any_names_have_an_order(names: list[str]) -> None:
    ordered = in_order(names)
    assert sorted(ordered) == sorted(names)
    assert in_order(reversed(ordered)) == ordered


def test_a_number_comes_before_longer_text_and_with_zeros_in_front_is_the_same() -> None:
    names = ["a", "a-1", "a/b", "a1", "a01", "a1b", "a2", "a10", "a010b", "b"]
    assert in_order(names) == ["a", "a01", "a1", "a1b", "a2", "a10", "a010b", "a-1", "a/b", "b"]


@given(st.integers(1, 3_000), st.integers(64, 100_000), st.integers(0, 5))
def test_files_are_chosen_once_and_from_everywhere(count: int, budget: int, seed: int) -> None:
    files = [f"d{n}" for n in range(count)]
    chosen = choose_files(files, budget, seed)
    assert len(chosen) == len(set(chosen)) == min(count, budget // 64)
    assert set(chosen) <= set(files)
    if len(chosen) >= 4:
        places = sorted(int(name[1:]) for name in chosen)
        assert max(b - a for a, b in pairwise(places)) <= 2 * count / len(chosen) + 1


@given(st.integers(1, 5_000), st.text(max_size=10), st.integers(0, 3))
def test_rows_are_chosen_once_with_the_first_positions(tokens: int, name: str, seed: int) -> None:
    rows = choose_rows(tokens, name, seed).tolist()
    assert rows == sorted(set(rows)) == choose_rows(tokens, name, seed).tolist()
    assert len(rows) == min(tokens, 64)
    assert rows[: min(tokens, 4)] == list(range(min(tokens, 4)))
    assert max(rows) < tokens
