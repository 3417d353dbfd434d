"""`specscope db`: bring the database to a revision, look at it, copy it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from specscope_server.cli.options import Database
from specscope_server.kit.errors import InvalidInput, SpecscopeError
from specscope_server.settings import load_settings
from specscope_server.store import migrate
from specscope_server.store.backup import backup as copy_database
from specscope_server.store.engine import create_store_engine, parse_url
from specscope_server.store.maintenance import disk_use

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Upgrade, downgrade, inspect or back up the database.",
    pretty_exceptions_enable=False,
)

Revision = Annotated[str, typer.Argument(help="A revision, 'head' (newest) or 'base' (none).")]


@app.command()
def upgrade(revision: Revision = "head", database: Database = None) -> None:
    """Bring the tables up to a revision; data stays."""
    with _opened(database, may_create=True) as engine:
        before = migrate.current(engine)
        migrate.upgrade(engine, revision)
        _tell_change(engine, before)


@app.command(context_settings={"ignore_unknown_options": True})  # else -1 is taken for a flag
def downgrade(
    revision: Annotated[str, typer.Argument(help="A revision, '-1' (one back) or 'base' (none).")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: Database = None,
) -> None:
    """Take the tables back to a revision. Data of tables and columns that go is LOST."""
    with _opened(database) as engine:
        before = migrate.current(engine)
        if not yes:
            question = f"Downgrade from {before or 'base'} to {revision}? Data of removed tables is lost."
            typer.confirm(question, abort=True)
        migrate.downgrade(engine, revision)
        _tell_change(engine, before)


@app.command()
def current(database: Database = None) -> None:
    """Print the database's revision and size; exit status 1 when it is not the newest."""
    with _opened(database) as engine:
        revision, newest, size = migrate.current(engine), migrate.head(engine), disk_use(engine)
        known = migrate.is_known(engine, revision)
    behind = f"newest is {newest}: run specscope db upgrade"
    ahead = f"unknown here, where {newest} is the newest: use the version of Specscope that wrote it"
    state = "newest" if revision == newest else behind if known else ahead
    typer.echo(f"{revision or 'none'} ({state}), {size / 1e6:.1f} MB")
    if revision != newest:
        raise typer.Exit(1)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="File to write; must not exist.")], database: Database = None
) -> None:
    """Copy the database to a file, consistently, also while it is in use."""
    copy_database(parse_url(_url(database)), target)
    typer.echo(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


def main(argv: list[str]) -> int:
    """Run `specscope db ARGV` and return the exit status: 1 not done, 2 wrong usage."""
    try:
        app(argv, prog_name="specscope db")
    except SpecscopeError as error:
        typer.echo(f"specscope db: {error.detail}", err=True)
        return 1
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _url(database: str | None) -> str:
    return load_settings({"database": database}).database


@contextmanager
def _opened(database: str | None, *, may_create: bool = False) -> Iterator[Engine]:
    """Open the database; without ``may_create`` a SQLite file must be there (a slip makes no file)."""
    url = _url(database)
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite" and not may_create and not Path(parsed.database or "").is_file():
        raise InvalidInput(f"there is no database {parsed.database}; name it with --database, or run upgrade")
    engine = create_store_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _tell_change(engine: Engine, before: str | None) -> None:
    after = migrate.current(engine)
    typer.echo(
        f"{before or 'none'} → {after or 'none'}" if before != after else f"{after or 'none'}: nothing to do"
    )
