"""Who changed what of alerts: written in the change's own transaction, read by REST."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Connection, Table, select

from specscope_server.alerts.schemas import AuditItem, AuditList
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Audit

AUDIT: Table = Audit.__table__  # type: ignore[assignment]


def note(
    connection: Connection, at_ms: int, actor: str, action: str, target: str, before: Any = None,
    after: Any = None,
) -> None:  # fmt: skip
    """Keep one change; ``before`` and ``after`` are JSON-able and hold no secrets."""
    texts = {
        name: None if value is None else orjson.dumps(value).decode()
        for name, value in (("before", before), ("after", after))
    }
    row = {"at_ms": at_ms, "actor": actor, "action": action, "target": target, **texts}
    connection.execute(AUDIT.insert().values(row))


def list_audit(
    connection: Connection, action: str | None, target: str | None, limit: int, cursor: str | None
) -> AuditList:
    """Return one page, newest first. ``action``: the beginning, e.g. ``silence``."""
    query = select(AUDIT).order_by(AUDIT.c.id.desc()).limit(limit + 1)
    after = decode_cursor(cursor, (int,))
    if after:
        query = query.where(AUDIT.c.id < after[0])
    if action:
        query = query.where(AUDIT.c.action.startswith(action, autoescape=True))
    if target:
        query = query.where(AUDIT.c.target == target)
    rows = connection.execute(query).all()
    more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
    return AuditList(entries=[_item(row) for row in rows[:limit]], next_cursor=more)


def _item(row: Any) -> AuditItem:
    return AuditItem(
        id=row.id,
        at=to_iso(row.at_ms),
        actor=row.actor,
        action=row.action,
        target=row.target,
        before=_loaded(row.before),
        after=_loaded(row.after),
    )


def _loaded(text: str | None) -> Any:
    """Return what was kept; a text that is no JSON as it is."""
    try:
        return None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
