"""Time as a dependency of the collectors: tests inject their own clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Returns UTC epoch milliseconds."""

Monotonic: TypeAlias = Callable[[], float]
"""Returns seconds that never run backwards."""


def system_clock() -> int:
    """Return the current time as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000
