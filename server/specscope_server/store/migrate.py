"""Bring the database's tables to a revision; the migrations travel in the wheel or stand in the checkout."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from specscope_server.kit.errors import InvalidInput, Unavailable

_ALONE = threading.Lock()
"""Alembic keeps the migration in progress in module globals: one at a time in a process."""


def migrations_path() -> Path:
    """Return the folder of the migrations: inside the installed package, else in the checkout."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "_migrations", package.parents[1] / "migrations")
    for candidate in candidates:
        if (candidate / "env.py").is_file():
            return candidate
    raise FileNotFoundError(
        f"no migrations at {' or '.join(map(str, candidates))}: the installation is incomplete"
    )


def configuration(engine: Engine) -> Config:
    """Return Alembic's configuration for this engine, made in memory (there is no alembic.ini)."""
    config = Config()
    config.set_main_option("script_location", str(migrations_path()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "%%(year)d_%%(month).2d_%%(day).2d_%%(slug)s")
    config.attributes["engine"] = engine
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Apply migrations up to ``revision``. Raises InvalidInput when there is no such revision, Unavailable
    when the database refuses; then nothing is changed.
    """
    with _explained(engine, revision), _ALONE:
        command.upgrade(configuration(engine), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Undo migrations down to ``revision`` (``base``: all, ``-1``: one). Data of dropped tables is lost.

    Raises as `upgrade` does.
    """
    with _explained(engine, revision), _ALONE:
        command.downgrade(configuration(engine), revision)


@contextmanager
def _explained(engine: Engine, revision: str) -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise _no_revision(revision, error) from error
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise Unavailable(
            f"the database {engine.url.render_as_string()} cannot be brought to revision {revision!r}: "
            f"{reason}; remove the cause and try again, or give Specscope a database of its own"
        ) from error


def current(engine: Engine) -> str | None:
    """Return the revision of the database; None before the first migration."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def head(engine: Engine) -> str:
    """Return the newest revision that this version of the product knows."""
    revision = ScriptDirectory.from_config(configuration(engine)).get_current_head()
    if revision is None:
        raise FileNotFoundError(f"no migrations in {migrations_path()}: the installation is incomplete")
    return revision


def is_known(engine: Engine, revision: str | None) -> bool:
    """Whether this version of the product knows the revision (None, no revision at all, it does)."""
    script = ScriptDirectory.from_config(configuration(engine))
    return revision is None or any(each.revision == revision for each in script.walk_revisions())


def is_current(engine: Engine) -> bool:
    """Whether the database is at the newest revision."""
    return current(engine) == head(engine)


def _no_revision(revision: str, error: CommandError) -> InvalidInput:
    return InvalidInput(
        f"the database cannot be brought to revision {revision!r}: {error}; "
        "use a revision of this version of Specscope, 'head' or 'base' (is the database of a newer version?)"
    )
