"""Pages by cursor: an opaque text says after which key the next page starts; stable while rows are added."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import orjson
from fastapi import Query

from specscope_server.kit.errors import InvalidInput

Cursor = Annotated[
    str | None,
    Query(alias="cursor", description="`next_cursor` of the previous page; absent for the first page"),
]
MAX_ID = 2**63 - 1
"""Largest whole number that the databases hold."""
Limit = Annotated[int, Query(alias="limit", ge=1, le=1_000, description="Most items on one page")]


def encode_cursor(key: list[int | str]) -> str:
    """Return an opaque text for the sort key of the last item of a page."""
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def decode_cursor(cursor: str | None, kinds: tuple[type, ...]) -> list[int | str] | None:
    """Return the sort key, None without a cursor; raise `InvalidInput` for a text that we never gave out."""
    if cursor is None:
        return None
    try:
        key = orjson.loads(
            base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        )
    except (binascii.Error, ValueError):
        key = None
    if not isinstance(key, list) or [type(part) for part in key] != list(kinds) or not _fits(key):
        raise InvalidInput(
            f"cursor={cursor[:60]!r} is not one of ours; leave it out to start at the first page"
        )
    return key


def _fits(key: list[int | str]) -> bool:
    return all(isinstance(part, str) or abs(part) <= MAX_ID for part in key)
