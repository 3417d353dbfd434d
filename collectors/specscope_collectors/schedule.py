"""When something is due, by a clock that never runs backwards."""

from __future__ import annotations

from specscope_collectors.clock import Monotonic


class Due:
    """Due at once, then again an interval after each `restart`."""

    def __init__(self, interval_seconds: float, monotonic: Monotonic) -> None:
        self._interval_seconds = interval_seconds
        self._monotonic = monotonic
        self._next: float | None = None

    def now(self) -> bool:
        """Return whether it is time."""
        return self._next is None or self._monotonic() >= self._next

    def restart(self, at_most_seconds: float | None = None) -> None:
        """Wait one interval, or ``at_most_seconds`` if that is shorter."""
        limit = self._interval_seconds if at_most_seconds is None else at_most_seconds
        self._next = self._monotonic() + min(self._interval_seconds, limit)
