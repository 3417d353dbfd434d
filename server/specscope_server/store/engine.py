"""Open the store: one URL in, one SQLAlchemy engine out, set up the same way everywhere."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError

from specscope_server.kit.errors import InvalidInput, Unavailable

WRITES = "specscope_writes"
"""Execution option of a connection whose transactions take SQLite's write lock at once (BEGIN IMMEDIATE).

A transaction that reads first and writes later can fail with "database is locked" without waiting; one that
says so at the start waits for its turn (``busy_timeout``).
"""

BUSY_TIMEOUT_MS = 10_000

_NEW_FILE_PRAGMAS = (
    "auto_vacuum = INCREMENTAL",  # counts only before the first table, so it comes before WAL writes page 1
    "journal_mode = WAL",
)
_SQLITE_PRAGMAS = (
    "synchronous = NORMAL",  # a power cut may lose the newest commits, never the file
    f"busy_timeout = {BUSY_TIMEOUT_MS}",
    "foreign_keys = ON",
    "cache_size = -65536",  # KiB
    "mmap_size = 1073741824",
    "wal_autocheckpoint = 4000",  # pages: fewer, larger checkpoints
    "temp_store = MEMORY",
)


def parse_url(url: str) -> URL:
    """Return the URL with its driver; ``postgres://`` and ``postgresql://`` mean psycopg.

    Raises InvalidInput for what is no URL, for another database, and for SQLite without a file.
    """
    if url.startswith("postgres://"):
        url = "postgresql://" + url.removeprefix("postgres://")
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidInput(
            f"the database URL {url!r} cannot be read; "
            "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME"
        ) from None
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise InvalidInput(
                    f"the database URL {url!r} names no file; several threads share the store, "
                    "so it must be a file: sqlite:///specscope.sqlite3"
                )
            return parsed
        case "postgresql":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise InvalidInput(
                f"the database {other!r} is not supported; use sqlite:///FILE or postgresql://…"
            )


def create_store_engine(url: str) -> Engine:
    """Return an engine for the database at ``url``, checked to be reachable.

    Raises InvalidInput (URL, driver or file unusable) or Unavailable (server does not answer).
    """
    parsed = parse_url(url)
    build = _sqlite_engine if parsed.get_backend_name() == "sqlite" else _postgresql_engine
    engine = build(parsed)
    try:
        with engine.connect():
            pass
    except DBAPIError as error:
        engine.dispose()
        raise _cannot_open(parsed, error) from error
    return engine


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction that writes: commits at the end of the block, rolls back on an error."""
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        yield connection


def _sqlite_engine(url: URL) -> Engine:
    _check_writable(Path(url.database or ""))
    engine = create_engine(url)
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    _notice_removal(engine, Path(url.database or ""))
    return engine


def _notice_removal(engine: Engine, path: Path) -> None:
    """Refuse to go on with a file that was removed: what is written to it is lost with the last connection.

    Nor with another one in its place: writers remember ids of the one that was opened.
    """
    made: list[tuple[int, int] | None] = []

    def before_opening(*_: Any) -> None:
        if made and _file_of(path) != made[0]:
            raise sqlite3.OperationalError(
                f"the file {path} was removed or replaced while in use; put it back, or restart to use "
                "what is there now"
            )

    def opened(_connection: Any, _record: Any) -> None:
        if not made:
            made.append(_file_of(path))

    def taken(_connection: Any, _record: Any, _proxy: Any) -> None:
        if _file_of(path) != made[0]:
            raise DisconnectionError(f"{path} is not the file that was opened")

    event.listen(engine, "do_connect", before_opening)
    event.listen(engine, "connect", opened)
    event.listen(engine, "checkout", taken)


def _file_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one at the same path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _postgresql_engine(url: URL) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True, pool_size=10, connect_args={"connect_timeout": 10})
    except (ModuleNotFoundError, NoSuchModuleError, ImportError) as error:
        raise InvalidInput(
            f"PostgreSQL needs a driver that is not installed here ({error}); "
            "install it: pip install 'specscope[postgres]'"
        ) from error


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver starts no transactions of its own; `_begin_sqlite` does
    for pragma in _SQLITE_PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    # These wait for a writer to finish even where they change nothing, so they are not repeated.
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        for pragma in _NEW_FILE_PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _check_writable(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidInput(f"the database {path} cannot be made: there is no folder {folder}; make it first")
    target = path if path.exists() else folder
    if path.is_dir() or not os.access(target, os.W_OK):
        raise InvalidInput(
            f"the database {path} cannot be written: {target} is not writable for this user; "
            "name another file or change its permissions"
        )


def _cannot_open(url: URL, error: DBAPIError) -> InvalidInput | Unavailable:
    shown = url.render_as_string(hide_password=True)
    reason = str(error.orig).strip().splitlines()[0]
    if url.get_backend_name() == "sqlite":
        return InvalidInput(f"the database {shown} cannot be opened: {reason}; name another file")
    return Unavailable(
        f"the database {shown} does not answer: {reason}; check that it runs, and the user and password"
    )
