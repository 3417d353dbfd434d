"""Counters that fall although the server was not away: a restart, or several processes behind one address.

An engine needs longer to start than the time between two good scrapes, so such a fall is doubtful. Its values
wait for a few scrapes: if the counters keep growing, it was a restart after all and nothing is lost; if they
fall again, several processes answer by turns (a load balancer), and growth between them means nothing. Unless
the engine says each time that it is one never seen before: then it was restarted again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum, auto

import msgspec

from specscope_collectors.clock import Monotonic
from specscope_collectors.increments import SeriesKey, falls

HELD_SCRAPES = 3
"""Scrapes, after the one that fell, for which values wait."""
CALM_SCRAPES = 12
"""Scrapes without a fall after which one process is believed again."""
FLAPPING_SECONDS = 600.0
"""A second fall within this time is no restart."""
LEAST_SHARE = 0.25
"""Share of the counters that must fall together; a single odd counter is a matter of its own."""


class Doubt(Enum):
    """What to do with the values of a scrape."""

    NONE = auto()
    HELD = auto()
    """Wait."""
    RELEASED = auto()
    """The wait is over; it may have been a restart."""
    SEVERAL = auto()
    """Several processes answer by turns: take nothing."""
    ANEW = auto()
    """They no longer do: take this as the baseline."""


DOUBTFUL = frozenset({Doubt.HELD, Doubt.SEVERAL})
"""No value of the scrape may be taken."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the scrapes so far said: all that the next judgement depends on."""

    last: dict[SeriesKey, float] = {}
    """Counters of the last judged scrape."""
    engine: str | None = None
    """Which engine it was."""
    fell_at: float | None = None
    """When counters fell last without a reason, in seconds of the watch's clock."""
    held: int = 0
    """Scrapes for which values still wait."""
    calm_in: int = 0
    """Scrapes without a fall that are still needed before one process is believed again."""


NOTHING = Seen()


class Watch:
    """Watches the counters of one target from scrape to scrape."""

    def __init__(self, monotonic: Monotonic = time.monotonic, seen: Seen = NOTHING) -> None:
        self._monotonic = monotonic
        self.seen = seen
        self.fell_now = False
        """The counters of the last judged scrape fell, and nothing explains it."""

    def judge(self, counters: Mapping[SeriesKey, float], *, gap: bool, engine: str | None = None) -> Doubt:
        """Judge a good scrape; ``gap``: the one before it was not, so that a restart explains a fall.

        Counters of another ``engine`` than before are not those that grew, as if all had fallen.
        """
        seen = self.seen
        fell = fell_together(seen.last, counters) or seen.engine not in (None, engine)
        self._note(last=dict(counters), engine=engine)
        self.fell_now = fell and not gap and not seen.calm_in
        if seen.calm_in:
            self._note(calm_in=CALM_SCRAPES if fell else seen.calm_in - 1)
            return Doubt.SEVERAL if self.seen.calm_in else Doubt.ANEW
        if fell and not gap:
            return self._doubtful()
        if seen.held:
            self._note(held=0 if gap else seen.held - 1)
            return Doubt.HELD if self.seen.held else Doubt.RELEASED
        return Doubt.NONE

    def hold(self) -> Doubt:
        """Wait: what fell may be a restart."""
        self._note(held=HELD_SCRAPES, calm_in=0)
        return Doubt.HELD

    def _doubtful(self) -> Doubt:
        now, before = self._monotonic(), self.seen.fell_at
        self._note(fell_at=now)
        if before is not None and now - before < FLAPPING_SECONDS:
            self._note(held=0, calm_in=CALM_SCRAPES)
            return Doubt.SEVERAL
        return self.hold()

    def _note(self, **changes: object) -> None:
        self.seen = msgspec.structs.replace(self.seen, **changes)


def fell_together(before: Mapping[SeriesKey, float], now: Mapping[SeriesKey, float]) -> bool:
    """Return whether at least `LEAST_SHARE` of the counters that were above 0 are lower now."""
    fell, compared = falls((key, before[key], value) for key, value in now.items() if key in before)
    return fell > 0 and fell >= LEAST_SHARE * compared
