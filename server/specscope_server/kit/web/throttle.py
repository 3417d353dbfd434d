"""Slow down guessing: an address that failed too often must wait."""

from __future__ import annotations

import threading
from collections import OrderedDict

from specscope_server.kit.clock import Clock

MOST_FAILURES, WINDOW_MS = 20, 60_000
MOST_ADDRESSES = 4_096


class Throttle:
    """Counts failures per address in windows of a minute; safe to use from several threads, bounded."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_seconds(self, address: str) -> int:
        """Return how long the address must wait; 0 when it may try."""
        with self._lock:
            begun_ms, count = self._failures.get(address, (0, 0))
        left_ms = begun_ms + WINDOW_MS - self._clock()
        return -(-left_ms // 1_000) if count >= MOST_FAILURES and 0 < left_ms <= WINDOW_MS else 0

    def failed(self, address: str) -> None:
        """Count a failure."""
        now_ms = self._clock()
        with self._lock:
            begun_ms, count = self._failures.pop(address, (now_ms, 0))
            if not 0 <= now_ms - begun_ms < WINDOW_MS:
                begun_ms, count = now_ms, 0
            self._failures[address] = (begun_ms, count + 1)
            while len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)
