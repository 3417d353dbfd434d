"""`specscope token`: make tokens with a scope, list them, end them."""

from __future__ import annotations

from typing import Annotated

import typer

from specscope_server.cli.options import Database
from specscope_server.kit.clock import system_clock
from specscope_server.kit.errors import SpecscopeError
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.scopes import Scope
from specscope_server.settings import load_settings
from specscope_server.startup import opened_store
from specscope_server.store.tokens import create_token, list_tokens, revoke_token

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make tokens with a scope, list them, end them.",
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="Who uses it, e.g. the name of the GPU host.")]
ScopeOption = Annotated[
    Scope,
    typer.Option(
        "--scope",
        help="`ingest` sends what was observed and nothing else, `read` sees everything and changes nothing, "
        "`admin` may do all.",
    ),
]


@app.command()
def create(name: Name, scope: ScopeOption, database: Database = None) -> None:
    """Make a token and print it: it is shown this once, and only its hash is kept."""
    with opened_store(load_settings({"database": database})) as engine:
        typer.echo(create_token(engine, name, scope, system_clock()))


@app.command("list")
def list_(database: Database = None) -> None:
    """List all tokens, the revoked ones too: name, scope, created, last used, revoked."""
    with opened_store(load_settings({"database": database})) as engine:
        rows = [
            (row.name, row.scope, _time(row.created_ms), _time(row.last_used_ms), _time(row.revoked_ms))
            for row in list_tokens(engine)
        ]
    rows.insert(0, ("name", "scope", "created", "last used", "revoked"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command()
def revoke(name: Name, database: Database = None) -> None:
    """End a token for good; a running server refuses it within seconds."""
    with opened_store(load_settings({"database": database})) as engine:
        revoke_token(engine, name, system_clock())
    typer.echo(f"{name}: revoked")


def main(argv: list[str]) -> int:
    """Run `specscope token ARGV` and return the exit status: 1 not done, 2 wrong usage."""
    try:
        app(argv, prog_name="specscope token")
    except SpecscopeError as error:
        typer.echo(f"specscope token: {error.detail}", err=True)
        return 1
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _time(time_ms: int | None) -> str:
    return "–" if time_ms is None else to_iso(time_ms)
