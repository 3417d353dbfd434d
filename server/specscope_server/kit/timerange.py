"""Time windows: half-open, in UTC epoch milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """The half-open interval [from_ms, to_ms) cut into equal buckets of step_ms.

    ``from_ms`` is a multiple of ``step_ms`` (buckets are aligned to the epoch, so that two reads agree).
    """

    from_ms: int
    to_ms: int
    step_ms: int

    @property
    def buckets(self) -> int:
        """Number of buckets; the last one may reach past ``to_ms``."""
        return -(-(self.to_ms - self.from_ms) // self.step_ms)
