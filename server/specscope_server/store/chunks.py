"""Cut long lists of values into parts that one statement may bind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")

MAX_BOUND = 500
"""SQLite limits how many values a statement may bind (999 in old builds)."""


def chunks(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield the values in parts of at most `MAX_BOUND`, in order."""
    for start in range(0, len(values), MAX_BOUND):
        yield values[start : start + MAX_BOUND]
