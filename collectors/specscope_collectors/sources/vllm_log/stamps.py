"""When vLLM wrote a line: ``INFO 08-04 20:51:08 [metrics.py:120]``, without a year."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specscope_collectors.logs.stamps import NO_STAMP, NO_YEAR, Clockface

_OWN = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d-\d\d) (\d\d:\d\d:\d\d)(?!\d)")
HALF_YEAR_MS = 183 * 86_400_000


@dataclass(slots=True)
class VllmClock:
    """Turns the stamps of a log into epoch milliseconds; a stamp of the container runtime has a year."""

    clock: Clockface

    def read(self, prefix: str) -> int | str:
        """Return the time, or why there is none."""
        before = self.clock.last_ms
        found = self.clock.read(prefix)
        own = _OWN.search(prefix)
        if found != NO_STAMP or own is None:
            return found
        if self.clock.year is None:
            return NO_YEAR
        found = self._of_year(own[1], own[2])
        if isinstance(found, int) and before is not None and found < before - HALF_YEAR_MS:
            self.clock.year += 1
            found = self._of_year(own[1], own[2])
        return found

    def _of_year(self, day: str, time: str) -> int | str:
        return self.clock.read(f"{self.clock.year:04}-{day} {time}")
