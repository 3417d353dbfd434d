"""Arguments that every `specscope import` shares."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from specscope_server.kit.errors import InvalidInput

Server = Annotated[str, typer.Option("--server", help="Name under which the server is shown.")]
Timezone = Annotated[
    str,
    typer.Option(
        help="Zone of times written without one, e.g. Europe/Berlin. Times with a zone keep theirs."
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        help="Database URL: sqlite:///FILE or postgresql://USER@HOST/NAME. Without it: SPECSCOPE_DATABASE, "
        "the settings file, the default file here."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the observations instead of storing them.")]


def name_of(server: str) -> str:
    """Return the name of the server; raise `InvalidInput`."""
    if not server.strip() or any(ord(character) < 32 for character in server):
        raise InvalidInput("--server: the name is empty or has control characters; name the server")
    return server.strip()


def zone_of(name: str) -> tzinfo:
    """Return the time zone of this name; raise `InvalidInput`."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"--timezone {name}: there is no such zone here; write it like Europe/Berlin or UTC "
            "(zones come from the package tzdata where the system has none)"
        ) from None
