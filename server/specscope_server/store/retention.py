"""Remove what is older than it need be kept, in small steps, and say how large the store is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from specscope_server.kit.clock import Clock, system_clock
from specscope_server.store import dialects
from specscope_server.store.alert_retention import delete_old_alerts
from specscope_server.store.maintenance import delete_in_steps, disk_use, drop_partitions, give_back_space
from specscope_server.store.rollup import HOUR_MS

__all__ = ["Removed", "Retention", "RetentionLoop", "cutoff_ms", "disk_use", "enforce"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind of record is kept, in days."""

    raw_days: float = 7
    minute_days: float = 30
    ten_minutes_days: float = 180
    hour_days: float = 3 * 365
    requests_days: float = 30
    events_days: float = 365
    states_days: float = 90
    alerts_days: float = 365

    def days_of_tables(self) -> dict[str, float]:
        """Return table → days."""
        resolutions = {
            "": self.raw_days,
            "_1m": self.minute_days,
            "_10m": self.ten_minutes_days,
            "_1h": self.hour_days,
        }
        series = {
            f"{kind}{suffix}": days for kind in dialects.PARTITIONED for suffix, days in resolutions.items()
        }
        return {
            **series,
            "request": self.requests_days,
            "event": self.events_days,
            "trace": self.events_days,
            "state_profile": self.states_days,
        }


@dataclass(slots=True)
class Removed:
    """What one pass removed."""

    rows: dict[str, int] = field(default_factory=dict)
    """Table → rows deleted."""
    partitions: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.partitions) or any(self.rows.values())


def cutoff_ms(days: float, now_ms: int) -> int:
    """Return the time before which rows go; a full hour, so that no roll-up is left with half its samples."""
    cutoff = int(now_ms - days * dialects.DAY_MS)
    return cutoff - cutoff % HOUR_MS


def enforce(
    engine: Engine, retention: Retention, now_ms: int, stop: Callable[[], bool] = lambda: False
) -> Removed:
    """Remove what is too old; ``stop`` is asked between the steps."""
    removed = Removed()
    for table, days in retention.days_of_tables().items():
        before_ms = cutoff_ms(days, now_ms)
        if table in dialects.PARTITIONED and not dialects.is_sqlite(engine):
            removed.partitions += drop_partitions(engine, table, before_ms)
            continue
        for rows in delete_in_steps(engine, table, before_ms):
            removed.rows[table] = removed.rows.get(table, 0) + rows
            if stop():
                return removed
    for table, rows in delete_old_alerts(engine, cutoff_ms(retention.alerts_days, now_ms)):
        removed.rows[table] = removed.rows.get(table, 0) + rows
        if stop():
            return removed
    if removed:
        give_back_space(engine)
    return removed


class RetentionLoop:
    """Enforces retention from time to time; the application runs it in a thread of its own."""

    def __init__(
        self,
        engine: Engine,
        retention: Retention | None = None,
        clock: Clock = system_clock,
        interval_seconds: float = 600.0,
    ) -> None:
        self._engine = engine
        self._retention = retention or Retention()
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._stopped = threading.Event()

    def run(self) -> None:
        """Enforce now and after each interval until `stop`; a failure is logged and tried again."""
        while not self._stopped.is_set():
            try:
                self.run_once()
            except DBAPIError as error:
                log.warning("retention failed and will be tried again", error=str(error.orig))
            self._stopped.wait(self._interval_seconds)

    def run_once(self) -> Removed:
        """Enforce once."""
        removed = enforce(self._engine, self._retention, self._clock(), self._stopped.is_set)
        if removed:
            log.info("removed old data", rows=removed.rows, partitions=removed.partitions)
        return removed

    def stop(self) -> None:
        """End `run` soon: after the step that it is in."""
        self._stopped.set()
