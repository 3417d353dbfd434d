"""List finished requests, page by page, and show one."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.errors import NotFound
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import Request
from specscope_server.requests.filters import Scope
from specscope_server.requests.schemas import RequestItem, RequestPage
from specscope_server.requests.sorting import Sort, after, cursor_of, key_of, order_of

_COPIED = (
    "request_id", "launch_id", "prompt_tokens", "completion_tokens", "cached_tokens", "verify_calls",
    "accepted_drafts", "proposed_drafts", "e2e_seconds",
)  # fmt: skip


def list_requests(
    session: Session, server: str, scope: Scope, sort: Sort, limit: int, cursor: str | None
) -> RequestPage:
    """Return one page of the requests of ``scope`` in the order ``sort``."""
    query = (
        select(Request, key_of(sort))
        .where(*scope.conditions(), *after(sort, cursor))
        .order_by(*order_of(sort))
        .limit(limit + 1)
    )
    found = session.execute(query).all()
    page = found[:limit]
    more = cursor_of(sort, page[-1][1], page[-1][0].id) if len(found) > limit else None
    return RequestPage(server=server, requests=[item_of(row) for row, _ in page], next_cursor=more)


def request_row(session: Session, server_id: int, number: int) -> Request:
    """Return the request with this number; raise `NotFound`."""
    row = session.get(Request, number) if number < 2**63 else None
    if row is None or row.server_id != server_id:
        raise NotFound(
            f"this server has no request with the number {number}; it may be older than what is kept. "
            "Numbers are listed at /api/v1/requests"
        )
    return row


def item_of(row: Any) -> RequestItem:
    """Return a request as the API shows it; ``row`` is a `Request`, or has the same columns."""
    copied: dict[str, Any] = {name: getattr(row, name) for name in _COPIED}
    accepted, calls, proposed = row.accepted_drafts, row.verify_calls, row.proposed_drafts
    return RequestItem(
        number=row.id,
        time=to_iso(row.time_ms),
        accept_length=1 + accepted / calls if accepted is not None and calls else None,
        draft_acceptance=accepted / proposed if accepted is not None and proposed else None,
        accepted_histogram=None if row.accepted_histogram is None else orjson.loads(row.accepted_histogram),
        labels=orjson.loads(row.labels),
        **copied,
    )
