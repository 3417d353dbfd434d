"""Steps of removing old rows and of giving their space back; one short transaction each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, select

from specscope_server.models import Base, Series, Server
from specscope_server.store import dialects
from specscope_server.store.engine import write_transaction

OWNERS_PER_STEP = 100
ROWS_PER_STEP = 20_000
"""Most rows that one step deletes, shared evenly among its owners; a writer waits some 50 ms for it."""
VACUUM_PAGES = 1_000
FREE_PAGES_KEPT = 2_000
"""Free pages that stay in a SQLite file for the next rows (8 MB)."""


def delete_in_steps(engine: Engine, table: str, before_ms: int) -> Iterator[int]:
    """Delete the table's rows from before this time; yield after each transaction how many went."""
    by_series = "series_id" in Base.metadata.tables[table].columns
    with engine.connect() as connection:
        owners = connection.scalars(select(Series.id if by_series else Server.id)).all()
    for start in range(0, len(owners), OWNERS_PER_STEP):
        while rows := _delete_step(engine, table, owners[start : start + OWNERS_PER_STEP], before_ms):
            yield rows


def _delete_step(engine: Engine, table: str, owners: Sequence[int], before_ms: int) -> int:
    """Delete the oldest rows of each owner; both ways find them by an index that begins with the owner."""
    most = ROWS_PER_STEP // len(owners)
    with write_transaction(engine) as connection:
        if "series_id" in Base.metadata.tables[table].columns:
            return dialects.delete_oldest_of_series(connection, table, owners, before_ms, most)
        return dialects.delete_oldest_of_servers(connection, table, owners, before_ms, most)


def drop_partitions(engine: Engine, table: str, before_ms: int) -> list[str]:
    """Drop the daily partitions (PostgreSQL) that end before this time and return their names."""
    with engine.connect() as connection:
        names = [name for name in dialects.partitions(connection) if name.startswith(f"{table}_p")]
    old = [name for name in names if _end_ms(name) <= before_ms]
    for name in old:
        with engine.begin() as connection:
            dialects.drop_partition(connection, name)
    return old


def _end_ms(partition: str) -> int:
    day = datetime.strptime(partition[-8:], "%Y%m%d").replace(tzinfo=UTC)
    return int(day.timestamp() * 1000) + dialects.DAY_MS


def give_back_space(engine: Engine) -> None:
    """Shrink a SQLite file by its free pages, a few at a time; PostgreSQL's autovacuum needs no help."""
    if not dialects.is_sqlite(engine):
        return
    with closing(engine.raw_connection()) as connection:  # the driver's own: each statement commits by itself
        cursor = connection.cursor()
        while cursor.execute("PRAGMA freelist_count").fetchone()[0] > FREE_PAGES_KEPT:
            # The pragma yields once per page; `execute` would take the first and stop.
            cursor.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")


def disk_use(engine: Engine) -> int:
    """Return the bytes that the database takes on disk, write-ahead log of SQLite included."""
    if dialects.is_sqlite(engine):
        path = Path(engine.url.database or "")
        files = (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"))
        return sum(file.stat().st_size for file in files if file.exists())
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
