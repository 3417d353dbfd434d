"""From what an engine told, moment by moment, to its log windows: T = running × τ / throughput of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Flags, Floats
from specscope_server.kit.timerange import Window
from specscope_server.timing.prints import Shown

LONGEST = 4.0
"""A window with a prefill whose cycles look so many times longer than usual holds an idle stretch: the first
window after one spans it. It is left out. Without a prefill in it, the engine was at work all the time."""
REPEATED = 1.5
"""An unchanged value that stands for so many windows is that of a new one."""
USUAL_INTERVAL = 40
"""SGLang's ``decode_log_interval`` where nobody said it."""
POOLED = 21
"""Windows that are added up where none is clean."""
MIN_CLEAN = 5
"""Windows without a prefill from which T_c is taken; with fewer, prefills stay in it."""


Times: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Windows:
    """Log windows of one scheduler; arrays of shape (windows,)."""

    time_ms: Times
    """When each was first seen."""
    cycles: Floats
    seconds: Floats
    """All time, prefills included."""
    inside: Floats
    """Of it, in cycles."""
    running: Floats
    tokens: Floats
    is_clean: Flags
    """No prefill and no idle stretch in it."""
    tells_cycles: bool
    """T_c is of clean windows, and prefills lie between; else both are in it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What counters and gauges of a whole launch say, in buckets; arrays of shape (buckets,)."""

    window: Window
    idle: Flags
    prefill: Flags | None
    """None = the engine counts no prefills."""

    def any_within(self, flags: Flags, after_ms: Times, until_ms: Times) -> Flags:
        """Tell for each (after, until] whether it touches a bucket that is marked."""
        before = np.concatenate(([0], np.cumsum(flags)))
        first, last = (
            np.clip((ends - self.window.from_ms) // self.window.step_ms, 0, len(flags) - 1)
            for ends in (after_ms + 1, until_ms)
        )
        return np.asarray(before[last + 1] > before[first])


def windows_of(shown: Shown, seen: Seen, *, is_plain: bool) -> Windows | None:
    """Return the windows that lie wholly inside active time; None without one.

    Requests of a window without a prefill: the mean of those at its two ends. One with a prefill holds as
    many cycles as the others, each as long as theirs: what they do not take lies between cycles.
    """
    length = np.ones(len(shown.time_ms)) if is_plain else shown.length
    tokens_a_cycle = shown.running * length
    is_told = (shown.throughput > 0) & (tokens_a_cycle > 0)
    at = np.flatnonzero(is_told)
    if len(at) < 2:
        return None
    period = tokens_a_cycle[at] / shown.throughput[at]
    if not shown.is_log:
        fresh = _fresh(shown, at, period, seen)
        at, period = at[fresh], period[fresh]
    if len(at) < 2:
        return None
    time_ms, before, here = shown.time_ms[at][1:], at[:-1], at[1:]
    running = (shown.running[before] + shown.running[here]) / 2
    period = running * length[here] / shown.throughput[here]
    since_ms = shown.time_ms[before]
    # The window of a print began with the print before, which was seen up to a scrape late.
    began_ms = since_ms if shown.is_log else since_ms - _lateness(shown)
    joins = _joins(shown, seen, began_ms, time_ms)
    if joins is None:
        joins = shown.running[before] != shown.running[here]
    is_long = period > LONGEST * np.median(period)
    spans_idle = _rests(shown, seen, began_ms, time_ms) | (is_long & (joins | (seen.prefill is None)))
    keep = ~spans_idle
    if not keep.any():
        return None
    elapsed, length, rate = (
        (time_ms - since_ms)[keep] / 1_000,
        length[here][keep],
        shown.throughput[here][keep],
    )
    is_clean, period, time_ms = ~joins[keep], period[keep], time_ms[keep]
    tells_cycles = int(is_clean.sum()) >= MIN_CLEAN
    if tells_cycles:
        period = np.interp(time_ms, time_ms[is_clean], period[is_clean])
    elif not shown.is_log:
        period = _pooled(period, rate, elapsed)
    cycles = _cycles(shown, period, elapsed, is_clean)
    inside, seconds = cycles * period, np.where(is_clean & tells_cycles, cycles * period, elapsed)
    if not tells_cycles:
        inside = seconds = seconds if shown.interval else inside
    elif seconds.sum() < inside.sum():
        seconds = inside  # prefills so short that they do not show beside how late scrapes are
    tokens = rate * seconds
    return Windows(
        time_ms, cycles, seconds, inside, tokens / (cycles * length), tokens, is_clean, tells_cycles
    )


def _pooled(period: Floats, rate: Floats, elapsed: Floats) -> Floats:
    """Return running × τ over throughput, each added up over the windows around: requests that come and go
    within windows put each of them off, and a mean of such quotients would be too long.
    """
    near = np.ones(min(POOLED, len(period)))
    tokens = np.convolve(rate * elapsed, near, mode="same")
    return np.asarray(np.convolve(period * rate * elapsed, near, mode="same") / tokens)


def _joins(shown: Shown, seen: Seen, began_ms: Times, time_ms: Times) -> Flags | None:
    """Tell which windows hold a prefill; None where nothing says so."""
    if shown.prefill_ms is not None:
        return _any_between(shown.prefill_ms, began_ms, time_ms)
    return None if seen.prefill is None else seen.any_within(seen.prefill, began_ms, time_ms)


def _rests(shown: Shown, seen: Seen, began_ms: Times, time_ms: Times) -> Flags:
    """Tell which windows hold a moment without work."""
    silent = shown.time_ms[shown.throughput == 0]
    return seen.any_within(seen.idle, began_ms, time_ms) | _any_between(silent, began_ms, time_ms)


def _fresh(shown: Shown, at: Times, period: Floats, seen: Seen) -> Flags:
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
            ends = time_ms[last : last + 1], time_ms[place : place + 1]
            has_rested = bool(_rests(shown, seen, *ends)[0])
            is_same = waited < usual or has_rested
        if not is_same:
            fresh[place], last = True, place
    return fresh


def _lateness(shown: Shown) -> int:
    """Return how late a scrape may have seen a print, in ms."""
    return int(np.median(np.diff(shown.time_ms))) if len(shown.time_ms) > 1 else 0


def _any_between(moments: Times, after: Times, until: Times) -> Flags:
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
