"""Long lists are bound in parts, and nothing is lost between them."""

from __future__ import annotations

from itertools import chain

import pytest

from specscope_server.store.chunks import MAX_BOUND, chunks


@pytest.mark.parametrize("size", [0, 1, MAX_BOUND, MAX_BOUND + 1, 3 * MAX_BOUND - 1])
def test_the_parts_are_the_whole_and_none_is_too_long(size: int) -> None:
    parts = list(chunks(range(size)))
    assert list(chain.from_iterable(parts)) == list(range(size))
    assert all(0 < len(part) <= MAX_BOUND for part in parts)
