"""When an engine is idle although its gauge of running requests still holds the old value (pure).

Fact (SGLang): before 0.5.23 an engine that ran out of work writes its gauges again only 30 s later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Flags, Floats

LATE_MS = 60_000
"""Longest standstill that an old gauge explains: 30 s and a slow scrape. An engine that claims to run
requests for longer without a token is stuck, not idle.
"""
MIN_SCRAPES = 2
"""Scrapes in a row that must show the standstill before it is believed."""


def standstill(decoded: Floats, others: list[Floats], queued: Floats) -> Flags:
    """Return per bucket: observed, and nothing was decoded, prefilled or finished, and nothing waits.

    decoded: growth of decoded tokens; others: growth of further counters (a long prefill is work); queued:
    waiting requests. Shape (buckets,), NaN = not observed: that leaves a bucket open, except for ``queued``.
    """
    still = decoded == 0
    for growth in others:
        still &= growth == 0
    return np.asarray(still & ~(queued > 0))


def late_idle(
    still: Flags, observed: Flags, scrapes: NDArray[np.int64], running: Floats, step_ms: int
) -> Flags:
    """Return the buckets of standstill that are idle whatever the gauge of running requests says.

    scrapes: how many a bucket holds; running: the gauge at the end of a bucket. A standstill is a run of
    observed buckets. It is idle as far as the gauge's last 0; what follows, only while an old gauge can
    explain it (`LATE_MS`) and if enough scrapes show it (`MIN_SCRAPES`).
    """
    idle = np.zeros(len(still), dtype=bool)
    places = np.flatnonzero(observed)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], still[places], [0]))))
    for start, end in edges.reshape(-1, 2):
        run = places[start:end]
        zeros = np.flatnonzero(running[run] == 0)
        told = int(zeros[-1]) + 1 if len(zeros) else 0
        idle[run[:told]] = True
        rest = run[told:]
        if len(rest) and (rest[-1] - rest[0] + 1) * step_ms <= LATE_MS:
            idle[rest] = scrapes[rest].sum() >= MIN_SCRAPES
    return idle
