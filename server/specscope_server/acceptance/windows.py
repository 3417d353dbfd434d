"""How finely a window is read, and how what was read is gathered into the buckets that were asked for (pure).

An engine's gauges freeze when it idles, so whether it was active must be decided scrape by scrape: in a
bucket of ten minutes with one busy minute, nine frozen minutes would drown it. Hence the store is read in
buckets finer than those shown, as finely as the length of the window allows, and only then gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specscope_server.acceptance.statistics import Flags, Floats
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.store.rollup import HOUR_MS, MINUTE_MS, TEN_MINUTES_MS

RAW_SPAN_MS = 6 * HOUR_MS
"""Windows up to here are read scrape by scrape, longer ones from summaries of a minute or more."""
MIN_FINE, MAX_FINE = 300, 10_000
MAX_VALUES, SERIES_PER_RANK = 1_200_000, 12
MAX_SUMMARIES = 3_000
SUMMARY_STEPS_MS = (MINUTE_MS, TEN_MINUTES_MS, HOUR_MS)


def most_buckets(launches: Sequence[Launch]) -> int:
    """Return how many fine buckets an answer about these launches may have.

    Every series has arrays over all of them: a server that restarts each minute has hundreds of launches in
    a few hours, and each data-parallel rank has series of its own.
    """
    ranks = sum(max(launch.dp_size or 1, 1) for launch in launches)
    return min(max(MAX_VALUES // (SERIES_PER_RANK * max(ranks, 1)), MIN_FINE), MAX_FINE)


def fine_step_ms(span_ms: int, scrape_interval_ms: int, most: int = MAX_FINE) -> int:
    """Return the step in which a window of this length is read, so that it has at most ``most`` buckets.

    Half a scrape interval: scrapes jitter, and two of them should not share a bucket.
    """
    raw_ms = max(1_000, scrape_interval_ms // 2, -(-span_ms // most))
    if span_ms <= RAW_SPAN_MS + 2 * SUMMARY_STEPS_MS[0] and raw_ms < SUMMARY_STEPS_MS[0] // 2:
        return raw_ms
    most = min(most, MAX_SUMMARIES)
    for step_ms in SUMMARY_STEPS_MS:
        if span_ms <= most * step_ms:
            return step_ms
    return -(-span_ms // (most * HOUR_MS)) * HOUR_MS


def fine_window(from_ms: int, to_ms: int, scrape_interval_ms: int, most: int = MAX_FINE) -> Window:
    """Return the window for one answer over [from, to); ``from`` moves back by less than a step."""
    step_ms = fine_step_ms(to_ms - from_ms, scrape_interval_ms, most)
    return Window(from_ms - from_ms % step_ms, to_ms, step_ms)


def refine(window: Window, scrape_interval_ms: int, most: int = MAX_FINE) -> tuple[Window, int]:
    """Return (the same window in finer buckets, how many of them make one)."""
    wanted_ms = fine_step_ms(window.to_ms - window.from_ms, scrape_interval_ms, most)
    parts = max(window.step_ms // wanted_ms, 1)
    if wanted_ms < SUMMARY_STEPS_MS[0]:
        parts = next(count for count in range(parts, 0, -1) if window.step_ms % count == 0)
    elif window.step_ms % wanted_ms:
        parts = 1
    return Window(window.from_ms, window.to_ms, window.step_ms // parts), parts


def group_sum(values: Floats, parts: int) -> Floats:
    """Return the sum of each ``parts`` neighbours; NaN where none was observed."""
    rows = _grouped(values, parts)
    total: Floats = np.nan_to_num(rows).sum(axis=1)
    total[np.isnan(rows).all(axis=1)] = np.nan
    return total


def group_mean(values: Floats, parts: int) -> Floats:
    """Return the mean of those of each ``parts`` neighbours that were observed."""
    seen = (~np.isnan(_grouped(values, parts))).sum(axis=1)
    return np.asarray(group_sum(values, parts) / np.maximum(seen, 1))


def group_any(flags: Flags, parts: int) -> Flags:
    """Return whether any of each ``parts`` neighbours is set."""
    return np.asarray(np.nan_to_num(_grouped(flags.astype(np.float64), parts)).any(axis=1))


def _grouped(values: Floats, parts: int) -> Floats:
    missing = -len(values) % parts
    return np.concatenate((values, np.full(missing, np.nan))).reshape(-1, parts)
