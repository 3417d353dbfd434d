"""What the collectors of one process know of the servers that they watch, for sources that join in.

A log that is followed beside a scraped ``/metrics`` describes the same launch: its records go to that launch,
and what the scrape gives already is not reported twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from specscope_collectors.observations import Launch, Target


@dataclass(frozen=True, slots=True)
class Watched:
    """One server as of its last stored scrape."""

    target: Target
    launch: Launch
    metrics: frozenset[str]
    """Canonical metrics that the scrapes of this launch gave so far."""
    time_ms: int = 0
    """Of the last stored scrape."""


class Board:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._watched: dict[str, Watched] = {}
        self._expected: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def tell(self, watched: Watched) -> None:
        """Say what was learnt of a server."""
        with self._lock:
            self._watched[watched.target.name] = watched

    def note(self, target: Target, launch: Launch, metrics: frozenset[str], time_ms: int) -> None:
        """Say what one more scrape gave; metrics that it lacks are still those of the launch."""
        before = self.look(target.name)
        if before is not None and before.launch.key == launch.key:
            metrics |= before.metrics
        self.tell(Watched(target, launch, metrics, time_ms))

    def expect(self, servers: Iterable[str]) -> None:
        """Say which servers are scraped by this process, whether they answer or not."""
        with self._lock:
            self._expected = frozenset(servers)

    def is_expected(self, server: str) -> bool:
        """Whether a server is scraped by this process."""
        with self._lock:
            return server in self._expected or server in self._watched

    def forget(self, server: str) -> None:
        """Say that a server is no longer watched."""
        with self._lock:
            self._watched.pop(server, None)

    def look(self, server: str) -> Watched | None:
        """Return what is known of a server by its name; None for one that is not watched here."""
        with self._lock:
            return self._watched.get(server)
