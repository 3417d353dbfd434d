"""From what an engine told, moment by moment, to its log windows: T = running × τ / throughput of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Flags, Floats
from specscope_server.timing.prints import Shown

LONGEST = 4.0
"""A window with a prefill whose cycles look so many times longer than usual holds an idle stretch: the first
window after one spans it. It is left out. Without a prefill in it, the engine was at work all the time."""
REPEATED = 1.5
"""An unchanged value that stands for so many windows is that of a new one."""
USUAL_INTERVAL = 40
"""SGLang's ``decode_log_interval`` where nobody said it."""
MIN_CLEAN = 5
"""Windows without a prefill from which T_c is taken; with fewer, prefills stay in it."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Log windows of one scheduler; arrays of shape (windows,)."""

    time_ms: NDArray[np.int64]
    """When each was first seen."""
    cycles: Floats
    seconds: Floats
    """Active time, prefills included."""
    running: Floats
    tokens: Floats
    is_clean: Flags
    """No prefill and no idle stretch in it."""

    @property
    def clean_periods(self) -> Floats:
        """Return T_c in seconds: of a window with a prefill that of the ones around it that have none."""
        clean = self.is_clean
        return np.interp(self.time_ms, self.time_ms[clean], (self.seconds / self.cycles)[clean])


def windows_of(
    shown: Shown, idle_ms: NDArray[np.int64], prefill_ms: NDArray[np.int64] | None, *, is_plain: bool
) -> Windows | None:
    """Return the windows that lie wholly inside active time; None without one.

    ``idle_ms``, ``prefill_ms``: moments at which the engine was seen idle, and with grown prefill counters
    (None = it counts none). Requests of a window: the mean of those at its two ends.
    """
    length = np.ones(len(shown.time_ms)) if is_plain else shown.length
    tokens_a_cycle = shown.running * length
    is_told = (shown.throughput > 0) & (tokens_a_cycle > 0)
    at = np.flatnonzero(is_told)
    if len(at) < 2:
        return None
    period = tokens_a_cycle[at] / shown.throughput[at]
    quiet_ms = np.union1d(idle_ms, shown.time_ms[shown.throughput == 0])
    if not shown.is_log:
        fresh = _fresh(shown, at, period, quiet_ms)
        at, period = at[fresh], period[fresh]
    if len(at) < 2:
        return None
    time_ms, before, here = shown.time_ms[at][1:], at[:-1], at[1:]
    running = (shown.running[before] + shown.running[here]) / 2
    period = running * length[here] / shown.throughput[here]
    since_ms = shown.time_ms[before]
    # The window of a print began with the print before, which was seen up to a scrape late.
    began_ms = since_ms if shown.is_log else since_ms - _lateness(shown)
    prefills = prefill_ms if shown.prefill_ms is None else shown.prefill_ms
    changes = shown.running[before] != shown.running[here]
    joins = changes if prefills is None else _any_between(prefills, began_ms, time_ms)
    is_long = period > LONGEST * np.median(period)
    spans_idle = _any_between(quiet_ms, began_ms, time_ms) | (is_long & (joins | (prefills is None)))
    cycles = _cycles(shown, period, (time_ms - since_ms) / 1_000, ~(spans_idle | joins))
    keep = ~spans_idle
    if not keep.any():
        return None
    cycles, running, period = cycles[keep], running[keep], period[keep]
    tokens = cycles * running * length[here][keep]
    return Windows(time_ms[keep], cycles, cycles * period, running, tokens, ~joins[keep])


def _fresh(shown: Shown, at: NDArray[np.int64], period: Floats, quiet_ms: NDArray[np.int64]) -> Flags:
    """Tell which moments show a window that was not counted yet: scrapes see a print again and again.

    After an idle stretch the gauge shows the old print until the next one, however long that takes.
    """
    fresh = np.zeros(len(at), dtype=bool)
    throughput, length, time_ms = shown.throughput[at], shown.length[at], shown.time_ms[at]
    last = -1
    for place in range(len(at)):
        is_same = last >= 0 and throughput[place] == throughput[last]
        is_same = is_same and (length[place] == length[last] or bool(np.isnan(length[place])))
        if is_same:
            waited = (time_ms[place] - time_ms[last]) / 1_000
            usual = REPEATED * period[place] * (shown.interval or USUAL_INTERVAL)
            has_rested = bool(_any_between(quiet_ms, time_ms[last : last + 1], time_ms[place : place + 1])[0])
            is_same = waited < usual or has_rested
        if not is_same:
            fresh[place], last = True, place
    return fresh


def _lateness(shown: Shown) -> int:
    """Return how late a scrape may have seen a print, in ms."""
    return int(np.median(np.diff(shown.time_ms))) if len(shown.time_ms) > 1 else 0


def _any_between(moments: NDArray[np.int64], after: NDArray[np.int64], until: NDArray[np.int64]) -> Flags:
    """Tell for each (after, until] whether a moment lies in it."""
    first, last = (np.searchsorted(moments, ends, side="right") for ends in (after, until))
    return np.asarray(last > first)


def _cycles(shown: Shown, period: Floats, elapsed: Floats, is_clean: Flags) -> Floats:
    """Return the cycles that each window stands for.

    A line of a log stands for its own window: as many cycles as any other. Where no one said how many, that
    follows from all stamps together. Of gauges, a value also stands for windows that no scrape saw.
    """
    if shown.is_log:
        return np.full(len(period), float(shown.interval or _interval(period, elapsed, is_clean)))
    if shown.interval is None:
        return np.asarray(elapsed / period)
    missed = np.maximum(np.rint(elapsed / (shown.interval * period)), 1.0)
    return np.asarray(missed * shown.interval)


def _interval(period: Floats, elapsed: Floats, is_clean: Flags) -> float:
    """Return cycles per window of a log from its stamps (whole seconds, so one by one they say little)."""
    used = is_clean if is_clean.any() else np.ones(len(period), dtype=bool)
    return max(float(elapsed[used].sum() / period[used].sum()), 1.0)
