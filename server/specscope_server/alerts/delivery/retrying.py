"""When a failed delivery is tried again (pure)."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential, with jitter, so that what failed together does not come back together."""

    first_seconds: float = 5.0
    factor: float = 2.0
    longest_seconds: float = 600.0
    spread: float = 0.5
    """Share of the wait that is random."""

    def wait_ms(self, attempts: int, after_seconds: float | None, chance: random.Random) -> int:
        """Return the milliseconds until the next try after ``attempts`` ≥ 1 failed ones.

        ``after_seconds``: what the receiver asked for; never earlier than that, and spread after it.
        """
        exponent = min(max(attempts, 1) - 1, 60)
        full = min(self.first_seconds * self.factor**exponent, self.longest_seconds)
        jittered = full * (1 - self.spread * chance.random())
        if after_seconds is not None:
            jittered = max(jittered, after_seconds * (1 + 0.1 * chance.random()))
        return max(round(jittered * 1_000), 1)
