"""Who asks: the name of the token that came with a request, for what is kept of changes."""

from __future__ import annotations

from fastapi import Request
from starlette.types import Scope

LOCAL = "local"
"""Where no token is set, everybody on this machine is the same."""
_KEY = "specscope.actor"


def note_actor(scope: Scope, name: str) -> None:
    """Remember with the request whose token it came with."""
    scope[_KEY] = name
    scope.setdefault("state", {})["actor"] = name


def actor_of(request: Request) -> str:
    """Return the name of the token, or `LOCAL`."""
    return str(request.scope.get(_KEY) or LOCAL)
