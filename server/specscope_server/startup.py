"""What happens when the server starts: the store is brought up to date, or the start is refused with the
remedy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import Engine

from specscope_server.kit.clock import Clock
from specscope_server.kit.errors import Unavailable
from specscope_server.settings import Settings
from specscope_server.store import migrate
from specscope_server.store.engine import create_store_engine
from specscope_server.store.retention import Retention, RetentionLoop

log = structlog.get_logger(__name__)


def prepare_store(engine: Engine, settings: Settings) -> None:
    """Upgrade an embedded SQLite file; upgrade PostgreSQL only when told to, since others may share it.

    Raises `Unavailable` when the tables are not at this version's revision and may not be upgraded.
    """
    if migrate.is_current(engine):
        return
    if engine.dialect.name != "sqlite" and not settings.migrate:
        raise Unavailable(
            f"the database is at revision {migrate.current(engine) or 'none'} and this version needs "
            f"{migrate.head(engine)}: run specscope db upgrade, or start with --migrate"
        )
    log.info("upgrading_database", before=migrate.current(engine), after=migrate.head(engine))
    migrate.upgrade(engine)


@contextmanager
def opened_store(settings: Settings) -> Iterator[Engine]:
    """Open the database of ``settings`` for a command, brought up to date; close it afterwards.

    Raises `Unavailable` as `prepare_store` does.
    """
    engine = create_store_engine(settings.database)
    try:
        prepare_store(engine, settings)
        yield engine
    finally:
        engine.dispose()


@contextmanager
def retention_running(engine: Engine, settings: Settings, clock: Clock) -> Iterator[None]:
    """Enforce retention in a thread of its own while the block runs."""
    loop = RetentionLoop(engine, retention_of(settings), clock)
    thread = threading.Thread(target=loop.run, name="retention", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.stop()
        thread.join(timeout=10)


def retention_of(settings: Settings) -> Retention:
    """Return how long each kind of record is kept."""
    return Retention(
        raw_days=settings.retention_raw_days,
        minute_days=settings.retention_1m_days,
        ten_minutes_days=settings.retention_10m_days,
        hour_days=settings.retention_1h_days,
        requests_days=settings.retention_requests_days,
        events_days=settings.retention_events_days,
        states_days=settings.retention_states_days,
        alerts_days=settings.retention_alerts_days,
    )
