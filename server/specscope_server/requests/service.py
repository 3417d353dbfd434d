"""Receive and list finished requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session

from specscope_collectors.sources.requests import RefusedError, parse_labels
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.bodies import JsonBody
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState
from specscope_server.models import Request, Server
from specscope_server.requests.receiving import items_of, read, store
from specscope_server.requests.schemas import Receipt, RequestItem, RequestPage
from specscope_server.store.identity import canonical
from specscope_server.store.limits import Limits
from specscope_server.store.lookup import launch_by_id, newest_launch, server_by_name

DAY_MS = 86_400_000
MAX_NAME_CHARACTERS, NAMES_SHOWN = 200, 20
_COPIED = (
    "request_id", "launch_id", "prompt_tokens", "completion_tokens", "cached_tokens", "verify_calls",
    "accepted_drafts", "proposed_drafts", "e2e_seconds",
)  # fmt: skip


def receive(
    session: Session, state: AppState, retention_days: float, server: str, body: JsonBody, labels: str,
    *, create: bool,
) -> Receipt:  # fmt: skip
    """Store the answers of one body and return what became of each.

    Raises `NotFound` for a server that is not known and not to be made, `InvalidInput` for a body that is no
    JSON, or labels that are none.
    """
    _check_server(session, server, create=create)
    session.rollback()  # ends the read, so that on SQLite the write that follows is not behind it
    now_ms = state.clock()
    found = read(items_of(body), header_labels(labels), now_ms)
    oldest_ms = Limits(max_age_ms=int(retention_days * DAY_MS)).oldest_ms(now_ms)
    return store(state.engine, server, found, now_ms, oldest_ms)


def header_labels(text: str) -> dict[str, str]:
    """Return labels written ``NAME=VALUE,NAME=VALUE``; raise `InvalidInput`."""
    try:
        return parse_labels(text)
    except RefusedError as error:
        raise InvalidInput(str(error)) from None


def _check_server(session: Session, name: str, *, create: bool) -> None:
    if session.scalar(select(Server.id).where(Server.name == name)) is not None:
        return
    if not create:
        known = session.scalars(select(Server.name).order_by(Server.name).limit(NAMES_SHOWN)).all()
        listed = f"known are {', '.join(item[:60] for item in known)}" if known else "none is known yet"
        raise NotFound(f"there is no server {name[:100]!r}: {listed}; add create=true to make a new one")
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            f"server={name[:60]!r} is no name; use 1 to {MAX_NAME_CHARACTERS} printable characters"
        )


def list_requests(
    session: Session, server: str, launch: str | None, span: TimeRange, labels: Mapping[str, str], limit: int,
    cursor: str | None,
) -> RequestPage:  # fmt: skip
    """Return one page of requests that finished inside ``span``, newest first."""
    row = server_by_name(session, server)
    query = select(Request).where(
        Request.server_id == row.id, Request.time_ms >= span.from_ms, Request.time_ms < span.to_ms
    )
    query = _of_launch(session, _with_labels(query, labels), row.id, launch)
    after = decode_cursor(cursor, (int, int))
    if after:
        query = query.where(tuple_(Request.time_ms, Request.id) < tuple_(*after))
    found = list(session.scalars(query.order_by(Request.time_ms.desc(), Request.id.desc()).limit(limit + 1)))
    page = found[:limit]
    more = encode_cursor([page[-1].time_ms, page[-1].id]) if len(found) > limit else None
    return RequestPage(server=server, requests=[_item(each) for each in page], next_cursor=more)


def _of_launch(session: Session, query: Select[Any], server_id: int, choice: str | None) -> Select[Any]:
    if choice in (None, "", "all"):
        return query
    launch = newest_launch(session, server_id) if choice == "newest" else launch_by_id(session, str(choice))
    if launch is None or launch.server_id != server_id:
        raise NotFound(
            f"this server has no launch {str(choice)[:60]!r}; its launches are listed at "
            "/api/v1/servers/NAME/launches"
        )
    return query.where(Request.launch_id == launch.id)


def _with_labels(query: Select[Any], labels: Mapping[str, str]) -> Select[Any]:
    """Labels are kept as JSON without blanks, in which no text can look like another pair of name and value.

    A replacement that changes the text is a search that knows upper from lower case on both databases.
    """
    for name, value in labels.items():
        pair = canonical({name: value})[1:-1]
        query = query.where(func.replace(Request.labels, pair, "") != Request.labels)
    return query


def _item(row: Request) -> RequestItem:
    copied: dict[str, Any] = {name: getattr(row, name) for name in _COPIED}
    accepted, calls, proposed = row.accepted_drafts, row.verify_calls, row.proposed_drafts
    return RequestItem(
        time=to_iso(row.time_ms),
        accept_length=1 + accepted / calls if accepted is not None and calls else None,
        draft_acceptance=accepted / proposed if accepted is not None and proposed else None,
        accepted_histogram=None if row.accepted_histogram is None else orjson.loads(row.accepted_histogram),
        labels=orjson.loads(row.labels),
        **copied,
    )


def parse_filters(texts: Sequence[str]) -> dict[str, str]:
    """Return the labels that requests must have; raise `InvalidInput` for what is not NAME=VALUE."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise InvalidInput(f"label={name[:60]!r} is not NAME=VALUE; write e.g. label=tenant=search")
    return {name: value for name, _, value in pairs}
