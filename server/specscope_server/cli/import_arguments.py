"""Arguments that every `specscope import` shares."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated

import typer

from specscope_collectors.zones import zone_named
from specscope_server.kit.errors import InvalidInput

Server = Annotated[str, typer.Option("--server", help="Name under which the server is shown.")]
Timezone = Annotated[
    str,
    typer.Option(
        help="Zone of times written without one, e.g. Europe/Berlin. Times with a zone keep theirs."
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
    try:
        return zone_named(name)
    except ValueError as error:
        raise InvalidInput(
            f"--timezone {name}: {error} (zones come from the package tzdata where the system has none)"
        ) from None
