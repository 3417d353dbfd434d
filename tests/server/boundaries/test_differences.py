"""Two lists of boundaries in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.boundaries.statistics import difference, is_other

CASES = {
    "deeper": ([2, 30, 58], [3, 31, 59], "every slot is one boundary deeper"),
    "shallower by two": ([4, 32], [2, 30], "every slot is 2 boundaries shallower"),
    "the story": (
        [3, 31, 59],
        [0, 3, 31],
        "slot 0 is the embedding, and each other slot holds the one before it",
    ),
    "shifted by something else": (
        [3, 31, 59],
        [1, 3, 31],
        "slot 0 is boundary 1, which no slot was trained on",
    ),
    "shifted up": (
        [2, 15, 27],
        [15, 27, 29],
        "each slot holds the one behind it, and the last is boundary 29",
    ),
    "swapped": ([2, 15, 27], [15, 2, 27], "the same boundaries in another order"),
    "one": ([2, 15, 27], [2, 16, 27], "slot 1 is boundary 16 instead of 15"),
    "embedding alone": ([2, 15, 27], [0, 15, 27], "slot 0 is the embedding instead of 2"),
    "fewer": ([2, 15, 27], [15, 27], "2 slots instead of 3"),
    "none": ([2, 15, 27], [], "nothing instead of 3"),
    "same": ([2, 15, 27], [2, 15, 27], ""),
    "not known": ([2, None, 27], [2, 99, 27], ""),
}


@pytest.mark.parametrize("name", CASES)
def test_words(name: str) -> None:
    expected, found, words = CASES[name]
    assert words in difference(expected, found)
    assert bool(difference(expected, found)) == bool(words)


places = st.lists(st.none() | st.integers(0, 6), max_size=5)


@given(places, places)
def test_words_are_there_if_and_only_if_lists_differ(one: list[int | None], other: list[int | None]) -> None:
    assert bool(difference(one, other)) == is_other(one, other) == is_other(other, one)
