"""Tell requests of canaries from users' traffic, which must not be mixed."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func

from specscope_collectors.observations import CANARY_ID_PREFIX
from specscope_server.models import Request


def is_canary() -> ColumnElement[bool]:
    """Return the condition for a canary's request (LIKE would ignore case on SQLite)."""
    return func.substr(Request.request_id, 1, len(CANARY_ID_PREFIX)) == CANARY_ID_PREFIX


def is_traffic() -> ColumnElement[bool]:
    """Return the condition for any other request."""
    return func.substr(Request.request_id, 1, len(CANARY_ID_PREFIX)) != CANARY_ID_PREFIX
