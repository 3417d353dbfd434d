"""Apply batches of observations: each as a whole or not at all, and once."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import structlog
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError

from specscope_collectors.observations import Batch, Resume
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.models import Collector
from specscope_server.store import dialects
from specscope_server.store.batch_writer import Written, write_batch
from specscope_server.store.engine import write_transaction
from specscope_server.store.limits import Limits
from specscope_server.store.prepared import Prepared, prepare
from specscope_server.store.refusal import Reason
from specscope_server.store.series_ids import SeriesCache, SeriesIds

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch. ``applied`` is False for one applied before: nothing is counted."""

    applied: bool
    samples: int = 0
    """Increments and levels stored."""
    distributions: int = 0
    duplicates: int = 0
    """Values whose series had one at that time already; the stored one stays."""
    refused: dict[Reason, int] = field(default_factory=dict)


@dataclass(slots=True)
class Statistics:
    """Counters since this writer was made, for the product's own metrics."""

    batches: int = 0
    repeated_batches: int = 0
    samples: int = 0
    distributions: int = 0
    duplicates: int = 0
    refused: Counter[Reason] = field(default_factory=Counter)


class IngestWriter:
    """The store as a `Sink`. Safe to use from several threads, and beside writers of other processes."""

    def __init__(self, engine: Engine, clock: Clock = system_clock, limits: Limits | None = None) -> None:
        self.statistics = Statistics()
        self._engine = engine
        self._clock = clock
        self._limits = limits or Limits()
        self._cache = SeriesCache()
        self._days: frozenset[int] = frozenset()
        self._last_refused: dict[str, frozenset[Reason]] = {}
        self._counting = threading.Lock()
        # SQLite has one writer: waiting here is fair and costs nothing, waiting in SQLite is polling.
        self._turn: AbstractContextManager[object] = (
            threading.Lock() if dialects.is_sqlite(engine) else nullcontext()
        )

    def resume(self, collector_id: str) -> Resume:
        """Return where the collector left off; ``Resume()`` for one never seen."""
        statement = select(Collector.sequence, Collector.checkpoint, Collector.launch_key)
        with self._engine.connect() as connection:
            row = connection.execute(statement.where(Collector.id == collector_id)).one_or_none()
        if row is None:
            return Resume()
        return Resume(sequence=row.sequence, checkpoint=row.checkpoint, launch_key=row.launch_key)

    def apply(self, batch: Batch) -> bool:
        """Store the batch durably, as a whole; False for a batch applied before, which changes nothing."""
        return self.apply_counted(batch).applied

    def apply_counted(self, batch: Batch) -> Applied:
        """Like `apply`, and say what was stored and what was refused.

        Raises InvalidInput when the batch's own names cannot be, SQLAlchemy's errors when the database fails.
        """
        prepared = prepare(batch, self._limits, self._clock())
        cache = self._cache
        ids = SeriesIds(cache, self._limits.max_series_per_launch)
        try:
            self._ensure_partitions(prepared)
            with self._turn, write_transaction(self._engine) as connection:
                written = self._write(connection, batch, prepared, ids)
        except DBAPIError:
            self._forget()
            raise
        cache.remember(ids.learnt)
        return self._count(batch, written)

    def _forget(self) -> None:
        """Look everything up again: who knows what became of the database (emptied, restored)."""
        self._cache = SeriesCache()
        self._days = frozenset()

    def _write(
        self, connection: Connection, batch: Batch, prepared: Prepared, ids: SeriesIds
    ) -> Written | None:
        if not claim(connection, batch, prepared.now_ms):
            return None
        dialects.lock_server(connection, batch.target.name)
        return write_batch(connection, batch, prepared, ids)

    def _ensure_partitions(self, prepared: Prepared) -> None:
        """Make the partitions of the batch's days; old days are looked up each time: retention drops them."""
        days = prepared.days - self._days
        if days:
            dialects.ensure_partitions(self._engine, days)
            yesterday = prepared.now_ms // dialects.DAY_MS - 1
            self._days = frozenset(day for day in self._days | days if day >= yesterday)

    def _count(self, batch: Batch, written: Written | None) -> Applied:
        with self._counting:
            if written is None:
                self.statistics.repeated_batches += 1
                return Applied(applied=False)
            self.statistics.batches += 1
            self.statistics.samples += written.samples
            self.statistics.distributions += written.distributions
            self.statistics.duplicates += written.duplicates
            self.statistics.refused.update(written.refused)
            reasons = frozenset(written.refused)
            changed = self._last_refused.get(batch.target.name, frozenset()) != reasons
            self._last_refused[batch.target.name] = reasons
        if changed:
            log.warning(
                "refused observations changed", server=batch.target.name, refused=dict(written.refused)
            )
        return Applied(
            True, written.samples, written.distributions, written.duplicates, dict(written.refused)
        )


def claim(connection: Connection, batch: Batch, now_ms: int) -> bool:
    """Take the batch's sequence and checkpoint for the collector; False when it was applied before.

    One statement, so that of two deliveries of one batch the second waits for the first and then sees it.
    A batch that brings no checkpoint or launch keeps the former ones.
    """
    statement = dialects.insert(connection, Collector.__table__).values(  # type: ignore[arg-type]
        id=batch.collector_id,
        sequence=batch.sequence,
        launch_key=batch.launch_key,
        checkpoint=batch.checkpoint,
        updated_ms=now_ms,
    )
    new, old = statement.excluded, Collector
    statement = statement.on_conflict_do_update(
        index_elements=["id"],
        set_={
            "sequence": new.sequence,
            "launch_key": func.coalesce(new.launch_key, old.launch_key),
            "checkpoint": func.coalesce(new.checkpoint, old.checkpoint),
            "updated_ms": new.updated_ms,
        },
        where=old.sequence < new.sequence,
    )
    return connection.execute(statement.returning(Collector.id)).first() is not None
