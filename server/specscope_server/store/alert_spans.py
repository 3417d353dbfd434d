"""When alerts fired, for pictures."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from specscope_server.models import AlertTransition

MAX_SPANS = 500
"""Fires that one picture can show; the newest are kept."""


@dataclass(frozen=True, slots=True)
class AlertSpan:
    """One fire. ``rule`` and ``labels`` are untrusted."""

    alert_id: str
    rule: str
    severity: str
    labels: dict[str, str]
    from_ms: int
    to_ms: int | None
    """None: it still fires."""


def read_spans(session: Session, server: str, from_ms: int, to_ms: int) -> list[AlertSpan]:
    """Return the fires of a server (and those of no server) that touch ``[from_ms, to_ms]``, oldest first.

    A fire that recovers and goes on firing is one.
    """
    begun = (
        select(
            AlertTransition.alert_id.label("alert_id"),
            func.min(AlertTransition.id).label("id"),
            func.min(AlertTransition.at_ms).label("at_ms"),
        )
        .where(AlertTransition.to_state == "firing", AlertTransition.at_ms <= to_ms)
        .group_by(AlertTransition.alert_id)
        .subquery()
    )
    ended = (
        select(func.max(AlertTransition.at_ms))
        .where(AlertTransition.alert_id == begun.c.alert_id, AlertTransition.to_state == "resolved")
        .correlate(begun)
        .scalar_subquery()
    )
    found = session.execute(
        select(
            begun.c.alert_id, begun.c.at_ms, ended,
            AlertTransition.rule, AlertTransition.severity, AlertTransition.labels,
        )
        .join(AlertTransition, AlertTransition.id == begun.c.id)
        .where(or_(ended.is_(None), ended >= from_ms))
        .order_by(begun.c.at_ms.desc())
    )  # fmt: skip
    spans: list[AlertSpan] = []
    for alert_id, at_ms, end_ms, rule, severity, labels in found:
        named: dict[str, str] = orjson.loads(labels)
        if named.get("server", server) == server:
            spans.append(AlertSpan(alert_id, rule, severity, named, at_ms, end_ms))
        if len(spans) == MAX_SPANS:
            break
    return spans[::-1]
