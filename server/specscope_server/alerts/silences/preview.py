"""What a silence would match, before it is made: alerts that fire, and series that have fired or may."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Connection, Row, select

from specscope_server.alerts.listing import rules_of
from specscope_server.alerts.pipeline.rows import STATES
from specscope_server.alerts.silences.matchers import all_hold
from specscope_server.alerts.silences.reach import reach_of
from specscope_server.alerts.silences.schemas import MatchedItem, SilencePreview, SilenceQuestion
from specscope_server.alerts.states.machine import ON, State

MOST_SHOWN = 100
MOST_READ = 20_000
"""Series that do not fire: those that changed last."""
ORDER = [State.FIRING, State.RECOVERING, State.PENDING]


def preview(connection: Connection, asked: SilenceQuestion) -> SilencePreview:
    """Return what matches now; nothing is changed."""
    fires = STATES.c.state.in_([state.value for state in ON])
    others = select(STATES).where(~fires).order_by(STATES.c.since_ms.desc()).limit(MOST_READ)
    rows = [*connection.execute(select(STATES).where(fires)), *connection.execute(others)]
    rules = rules_of(connection, {row.rule for row in rows})
    items = [_item(row, rules.get(row.rule, {})) for row in rows]
    firing = [item for item in items if item.state in ON]
    matched = [item for item in items if all_hold(asked.matchers, item.labels)]
    matched.sort(key=lambda item: (_place(item.state), item.rule, sorted(item.labels.items())))
    reach = reach_of(asked.matchers, [item.labels for item in firing])
    return SilencePreview(
        matches=reach.matches, known=len(matched) - reach.matches, warning=reach.warning,
        alerts=matched[:MOST_SHOWN],
    )  # fmt: skip


def _place(state: str) -> int:
    return ORDER.index(State(state)) if state in ORDER else len(ORDER)


def _item(row: Row[Any], rule: dict[str, Any]) -> MatchedItem:
    """Return a series with the labels by which it is, or would be, silenced."""
    card: dict[str, Any] = {} if row.card is None else orjson.loads(row.card)
    own = {"rule": row.rule, "severity": row.severity, "category": rule.get("category", "other")}
    labels = card.get("labels") or {**rule.get("labels", {}), **orjson.loads(row.labels), **own}
    return MatchedItem(
        alert_id=row.alert_id if row.state in ON else None, fingerprint=row.fingerprint, rule=row.rule,
        title=rule.get("title") or card.get("title") or row.rule, severity=row.severity, state=row.state,
        labels=labels,
    )  # fmt: skip
