"""Receive finished requests."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_collectors.sources.requests import RefusedError, parse_labels
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.bodies import JsonBody
from specscope_server.kit.web.state import AppState
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.models import Server
from specscope_server.requests.receiving import items_of, read, store
from specscope_server.requests.schemas import Receipt
from specscope_server.store.limits import Limits

DAY_MS = 86_400_000
MAX_NAME_CHARACTERS, NAMES_SHOWN = 200, 20


def receive(
    session: Session, state: AppState, retention_days: float, server: str, body: JsonBody, labels: str,
    *, create: bool, telemetry: Telemetry,
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
    receipt = store(state.engine, server, found, now_ms, oldest_ms)
    telemetry.count_requests(receipt.accepted, receipt.duplicates, found.causes)
    return receipt


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
