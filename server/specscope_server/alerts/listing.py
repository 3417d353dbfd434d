"""Alerts as the API shows them: now, and their history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
from sqlalchemy import Column, ColumnElement, Connection, Row, func, select

from specscope_server.alerts.card.links import AFTER_MS, BEFORE_MS
from specscope_server.alerts.pipeline.rows import QUIET, STATES, TRANSITIONS
from specscope_server.alerts.schemas import AlertItem, AlertList, History, TransitionItem
from specscope_server.alerts.states.machine import State
from specscope_server.kit.timeparse import iso_or_none, to_iso
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import AlertRule

MOST_LISTED = 5_000
_WORST = {"critical": 0, "warning": 1, "info": 2}
_FIRST = {"firing": 0, "recovering": 1, "pending": 2, "error": 3, "no_data": 4, "resolved": 5}


def list_alerts(
    connection: Connection, state: State | None, server: str | None, rule: str | None, health: str
) -> AlertList:
    """Return alerts, by default all that are something else than normal or resolved; the worst first."""
    query = select(STATES).limit(MOST_LISTED)
    query = query.where(STATES.c.state.not_in(QUIET) if state is None else STATES.c.state == state.value)
    if rule:
        query = query.where(STATES.c.rule == rule)
    if server:
        query = query.where(_of_server(STATES.c.labels, server))
    rows = connection.execute(query.order_by(STATES.c.since_ms.desc())).all()
    named = rules_of(connection, {row.rule for row in rows})
    items = [item_of(row, named) for row in rows]
    items.sort(key=lambda item: (_FIRST.get(item.state, 9), _WORST.get(item.severity, 9)))
    counted = connection.execute(select(STATES.c.state, func.count()).group_by(STATES.c.state))
    return AlertList(alerts=items, counts={row[0]: row[1] for row in counted}, health=health)


def rules_of(connection: Connection, names: set[str]) -> dict[str, dict[str, Any]]:
    """Return name → rule as it is written, of those that are still there."""
    query = select(AlertRule.name, AlertRule.body).where(AlertRule.name.in_(names))
    return {row.name: orjson.loads(row.body) for row in connection.execute(query)}


def _of_server(labels: Column[str], server: str) -> ColumnElement[bool]:
    """Return the condition that JSON with sorted keys names this server; quotes in values are escaped."""
    return labels.contains(orjson.dumps({"server": server}).decode()[1:-1], autoescape=True)


def item_of(row: Row[Any], rules: Mapping[str, Mapping[str, Any]]) -> AlertItem:
    """Return a state's row as an item."""
    card = {} if row.card is None else orjson.loads(row.card)
    reading = orjson.loads(row.reading)
    is_over = row.state == State.RESOLVED.value
    labels = card.get("labels") or orjson.loads(row.labels)
    rule = rules.get(row.rule, {})
    return AlertItem(
        alert_id=None if row.state == State.PENDING.value else row.alert_id,
        fingerprint=row.fingerprint,
        rule=row.rule,
        title=rule.get("title") or card.get("title") or row.rule,
        severity=row.severity,
        state=State(row.state),
        labels=labels,
        since=to_iso(row.since_ms),
        fired=iso_or_none(row.fired_ms),
        resolved=iso_or_none(row.resolved_ms),
        reason=str(card.get("reason", "") if is_over else reading.get("reason", "")),
        cause=str(reading.get("cause") or ""),
        **{name: reading.get(name) for name in ("value", "lower", "upper", "n")},
        unit=str(reading.get("unit", "")),
        n_unit=str(reading.get("n_unit", "")),
        acked_by=row.acked_by,
        acked=iso_or_none(row.acked_ms),
        acked_until=iso_or_none(row.ack_until_ms),
        muted_by=row.muted_by if row.state in ("firing", "recovering") else "",
        page=_page(str(rule.get("page", "")), reading, labels, row),
        is_demo=bool(card.get("is_demo", False)),
        is_heartbeat=(rule.get("condition") or {}).get("kind") == "heartbeat",
    )


def _page(wanted: str, reading: Mapping[str, Any], labels: Mapping[str, str], row: Row[Any]) -> str:
    """Return the page at the time of the alert, to its end or to now."""
    evidence = reading.get("evidence") or {}
    path = wanted or str(evidence.get("page") or "/")
    begin_ms = (row.fired_ms or row.since_ms) - BEFORE_MS
    end_ms = (row.resolved_ms or row.seen_ms) + AFTER_MS
    asked = {"server": labels.get("server", ""), "from": to_iso(max(begin_ms, 0)), "to": to_iso(end_ms)}
    mark = "&" if "?" in path else "?"
    return f"{path}{mark}{urlencode({name: value for name, value in asked.items() if value})}"


def history(
    connection: Connection, from_ms: int, to_ms: int, rule: str | None, server: str | None,
    state: State | None, limit: int, cursor: str | None,
) -> History:  # fmt: skip
    """Return changes of state in [from_ms, to_ms), newest first."""
    query = select(TRANSITIONS).where(TRANSITIONS.c.at_ms >= from_ms, TRANSITIONS.c.at_ms < to_ms)
    if rule:
        query = query.where(TRANSITIONS.c.rule == rule)
    if state is not None:
        query = query.where(TRANSITIONS.c.to_state == state.value)
    if server:
        query = query.where(_of_server(TRANSITIONS.c.labels, server))
    after = decode_cursor(cursor, (int, int))
    if after:
        at_ms, number = after
        earlier = (TRANSITIONS.c.at_ms == at_ms) & (TRANSITIONS.c.id < number)
        query = query.where((TRANSITIONS.c.at_ms < at_ms) | earlier)
    rows = connection.execute(
        query.order_by(TRANSITIONS.c.at_ms.desc(), TRANSITIONS.c.id.desc()).limit(limit + 1)
    ).all()
    more = encode_cursor([rows[limit - 1].at_ms, rows[limit - 1].id]) if len(rows) > limit else None
    return History(transitions=[transition_of(row) for row in rows[:limit]], next_cursor=more)


def transition_of(row: Row[Any]) -> TransitionItem:
    """Return a transition's row as an item."""
    return TransitionItem(
        id=row.id,
        at=to_iso(row.at_ms),
        alert_id=row.alert_id,
        fingerprint=row.fingerprint,
        rule=row.rule,
        severity=row.severity,
        labels=orjson.loads(row.labels),
        from_state=row.from_state,
        to_state=row.to_state,
        reason=row.reason,
        notified=iso_or_none(row.notified_ms),
    )
