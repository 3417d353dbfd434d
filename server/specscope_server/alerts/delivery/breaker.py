"""The circuit breaker of a channel (pure): after failures in a row only one attempt at a time is let through.

closed → (failures in a row) → open → (wait) → half-open: one attempt → closed, or open for longer.
"""

from __future__ import annotations

from typing import Literal

import msgspec

FAILURES_TO_OPEN = 5
FIRST_OPEN_MS = 60_000
LONGEST_OPEN_MS = 15 * 60_000
PROBE_MS = 180_000
"""After which an attempt that said nothing any more (its process died) no longer holds the place."""


class Breaker(msgspec.Struct, frozen=True):
    """State of a channel's breaker, kept in its row."""

    state: Literal["closed", "open", "half_open"] = "closed"
    failures: int = 0
    """In a row."""
    until_ms: int = 0
    """Open: no attempt before this. Half-open: until then the one attempt may take."""
    opened_ms: int | None = None
    """When it last opened from closed: since then nothing got through."""
    told_ms: int | None = None
    """When the other channels were told that this one fails."""

    def admits_at(self, now_ms: int) -> int:
        """Return from when on an attempt is let through (``now_ms`` = at once).

        A time further ahead than any breaker waits was written before the clock was set back.
        """
        is_ahead = self.until_ms > now_ms + LONGEST_OPEN_MS
        return now_ms if self.state == "closed" or is_ahead else max(self.until_ms, now_ms)

    def starting(self, now_ms: int) -> Breaker:
        """Return the state while an attempt runs that was let through at ``now_ms``."""
        if self.state == "closed":
            return self
        return msgspec.structs.replace(self, state="half_open", until_ms=now_ms + PROBE_MS)

    def succeeded(self) -> Breaker:
        """Return the state after a delivery."""
        return Breaker()

    def failed(self, now_ms: int) -> Breaker:
        """Return the state after a failed attempt."""
        failures = self.failures + 1
        if self.state == "closed" and failures < FAILURES_TO_OPEN:
            return msgspec.structs.replace(self, failures=failures)
        exponent = min(max(failures - FAILURES_TO_OPEN, 0), 20)
        until_ms = now_ms + min(FIRST_OPEN_MS * 2**exponent, LONGEST_OPEN_MS)
        return Breaker("open", failures, until_ms, self.opened_ms or now_ms, self.told_ms)

    def refused(self) -> Breaker:
        """Return the state after an answer that refuses the message for good: somebody answers."""
        return Breaker(told_ms=self.told_ms)


def breaker_of(text: str) -> Breaker:
    """Return the breaker that a channel's row keeps; one that cannot be read holds nothing up."""
    try:
        return msgspec.json.decode(text or "{}", type=Breaker)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Breaker()
