"""Notice that two collectors watch one server: each brings the whole growth, so sums would be double."""

from __future__ import annotations

import threading

from sqlalchemy import Engine, select

from specscope_server.kit.clock import Clock
from specscope_server.models import Collector

LOOK_EVERY_MS = 30_000
LATELY_MS = 60_000
WATCHES = "watch:"
"""Start of the ids of collectors that scrape a server; two hosts may well follow logs of the same name."""
MOST_REMEMBERED = 4_096


class Sharing:
    """Looks rarely, remembers meanwhile; safe to use from several threads."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._known: dict[str, tuple[int, list[str]]] = {}
        self._lock = threading.Lock()

    def others(self, collector_id: str) -> list[str]:
        """Return other collectors that sent something of the same server lately."""
        if not collector_id.startswith(WATCHES):
            return []
        now_ms = self._clock()
        with self._lock:
            looked_ms, found = self._known.get(collector_id, (-LOOK_EVERY_MS, []))
        if 0 <= now_ms - looked_ms < LOOK_EVERY_MS:
            return found
        found = self._look(collector_id, now_ms)
        with self._lock:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[collector_id] = (now_ms, found)
        return found

    def _look(self, collector_id: str, now_ms: int) -> list[str]:
        watched = collector_id.partition("#")[0]
        query = select(Collector.id).where(
            Collector.id.startswith(watched, autoescape=True),
            Collector.id != collector_id,
            Collector.updated_ms > now_ms - LATELY_MS,
        )
        with self._engine.connect() as connection:
            ids = connection.execute(query).scalars()
            return sorted(other for other in ids if other.partition("#")[0] == watched)[:10]
