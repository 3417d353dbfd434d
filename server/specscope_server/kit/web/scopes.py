"""What a token may do, by the shape of the route: no route says it itself, so none can forget to.

=========  ===================================================================================
scope      may
=========  ===================================================================================
read       ask anything (GET, HEAD), log in and out
ingest     send what was observed (below `INGEST_PATHS`), ask there how far it got; nothing else
admin      everything, what changes settings included
=========  ===================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

INGEST_PATHS = ("/api/v1/ingest", "/api/v1/requests", "/api/v1/traces", "/api/v1/references")
INGEST_ASKS = "/api/v1/ingest"
SESSION_PATHS = frozenset({"/logout"})
SAFE_METHODS = frozenset({"GET", "HEAD"})


class Scope(StrEnum):
    """What a token is for."""

    READ = "read"
    INGEST = "ingest"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Grant:
    """A token that was found and is not revoked."""

    id: int
    name: str
    scope: Scope
    digest: str


class TokenStore(Protocol):
    """Where tokens are looked up; every method may block and may raise what its database raises."""

    def by_digest(self, digest: str) -> Grant | None:
        """Return the token with this SHA-256 (hex); None for one that is unknown or revoked."""
        ...

    def by_id(self, token_id: int) -> Grant | None:
        """Return the token with this id; None for one that is unknown or revoked."""
        ...

    def note_use(self, token_id: int) -> None:
        """Remember that it was used just now."""
        ...


def scopes_for(method: str, path: str) -> frozenset[Scope]:
    """Return the scopes each of which may send this request."""
    if method in SAFE_METHODS:
        asks_ingest = _is_below(path, INGEST_ASKS)
        return frozenset(Scope) if asks_ingest else frozenset({Scope.READ, Scope.ADMIN})
    if path in SESSION_PATHS:
        return frozenset({Scope.READ, Scope.ADMIN})
    if method == "POST" and any(_is_below(path, each) for each in INGEST_PATHS):
        return frozenset({Scope.INGEST, Scope.ADMIN})
    return frozenset({Scope.ADMIN})


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
