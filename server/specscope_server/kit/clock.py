"""Time as a dependency: nothing in the product calls `time.time()` for data; tests inject their own clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Returns UTC epoch milliseconds."""


def system_clock() -> int:
    """Return the current time as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000
