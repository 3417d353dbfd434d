"""Copy the database to a file while it is in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL

from specscope_server.kit.errors import InvalidInput, Unavailable

PAGES_PER_STEP = 2_000
"""Between steps writers get their turn (8 MB)."""


def backup(url: URL, target: Path) -> None:
    """Write a consistent copy of the database at ``url`` to ``target``, which must not exist.

    SQLite: its online backup, a database file. PostgreSQL: ``pg_dump`` in custom format, for ``pg_restore``.
    Raises InvalidInput or Unavailable.
    """
    if target.exists():
        raise InvalidInput(f"the backup {target} exists already; name another file or remove it")
    if not target.absolute().parent.is_dir():
        raise InvalidInput(
            f"the backup {target} cannot be made: there is no folder {target.absolute().parent}"
        )
    partial = target.with_name(f"{target.name}.partial")
    try:
        if url.get_backend_name() == "sqlite":
            _backup_sqlite(Path(url.database or ""), partial)
        else:
            _backup_postgresql(url, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _backup_sqlite(source: Path, target: Path) -> None:
    if not source.is_file():
        raise InvalidInput(f"there is no database {source}; name an existing one with --database")
    with closing(sqlite3.connect(source)) as reader, closing(sqlite3.connect(target)) as writer:
        # One read transaction: without it every write to the source would start the copy anew.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reader.backup(writer, pages=PAGES_PER_STEP)


def _backup_postgresql(url: URL, target: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise Unavailable(
            "backing PostgreSQL up needs pg_dump, which is not on the PATH; install PostgreSQL's client "
            "(on Debian: apt install postgresql-client) of at least the server's version"
        )
    shown = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    environment = {**os.environ, **({"PGPASSWORD": str(url.password)} if url.password else {})}
    result = subprocess.run(  # noqa: S603  # no shell; the URL is the operator's own
        [program, "--format=custom", f"--file={target}", shown],
        capture_output=True,
        text=True,
        env=environment,
    )
    if result.returncode:
        raise Unavailable(f"pg_dump failed: {result.stderr.strip()}")
