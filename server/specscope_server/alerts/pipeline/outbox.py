"""Keep what was decided of a group, and put what is to be delivered into the outbox: in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, Table, select, update

from specscope_server.alerts.channels.notification import Card, Notification
from specscope_server.alerts.delivery.outbox import enqueue
from specscope_server.alerts.delivery.splitting import Room, split
from specscope_server.alerts.pipeline import rows
from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.pipeline.dedup import Decision, Told, digest_of
from specscope_server.alerts.pipeline.group import Group
from specscope_server.models import AlertGroup
from specscope_server.store import dialects

GROUPS: Table = AlertGroup.__table__  # type: ignore[assignment]
_WORST_FIRST = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """What a channel knows of a group, as the row says."""

    channel: str
    key: str
    labels: dict[str, str]
    told: Told
    reason: str
    revision: int

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to be told."""
        return not self.told.firing and self.told.next_flush_ms is None


def kept_groups(connection: Connection) -> dict[tuple[str, str], KeptGroup]:
    """Return (channel, key) → group, of all groups that a channel was ever told of."""
    found = (_group(row) for row in connection.execute(select(GROUPS)))
    return {(group.channel, group.key): group for group in found}


def _group(row: Any) -> KeptGroup:
    told = _told(orjson.loads(row.sent_firing), row.next_flush_ms, row.last_sent_ms)
    return KeptGroup(
        row.channel, row.group_key, orjson.loads(row.labels), told, row.last_reason, row.revision
    )


def _told(sent: Mapping[str, Any], next_flush_ms: int | None, last_sent_ms: int | None) -> Told:
    """Return it of alert id → who took it, or [who took it, severity]."""
    pairs = {key: value if isinstance(value, list) else [value, ""] for key, value in sent.items()}
    severity = {key: pair[1] for key, pair in pairs.items() if pair[1]}
    return Told({key: pair[0] for key, pair in pairs.items()}, next_flush_ms, last_sent_ms, severity)


def _sent(told: Told) -> str:
    known = told.severity
    sent = {key: [by, known[key]] if key in known else by for key, by in told.firing.items()}
    return orjson.dumps(sent, option=orjson.OPT_SORT_KEYS).decode()


def keep(
    connection: Connection, group: Group, kept: KeptGroup | None, decision: Decision,
    notification: Notification | None, room: Room, now_ms: int,
) -> list[int]:  # fmt: skip
    """Write the decision; return the ids of the deliveries, each of which the channel takes whole.

    When another process decided about this group since it was read, nothing is written: it has seen to it.
    """
    if not keep_group(connection, group, kept, decision) or notification is None:
        return []
    parts = split(notification, room)
    rows.told(connection, [card.alert_id for part in parts for card in part.alerts], now_ms)
    return [enqueue(connection, group.channel, part, now_ms, reason=decision.reason) for part in parts]


def keep_group(connection: Connection, group: Group, kept: KeptGroup | None, decision: Decision) -> bool:
    """Write what a channel knows of a group; False when another process did since it was read."""
    told = decision.told
    values = {
        "labels": orjson.dumps(group.labels, option=orjson.OPT_SORT_KEYS).decode(),
        "next_flush_ms": told.next_flush_ms,
        "last_sent_ms": told.last_sent_ms,
        "last_digest": digest_of(told),
        "sent_firing": _sent(told),
        "last_reason": decision.reason,
    }
    if kept is None:
        statement = dialects.insert(connection, GROUPS).values(
            channel=group.channel, group_key=group.key, revision=1, **values
        )
        return rows.inserted(connection, statement, GROUPS.c.channel, GROUPS.c.group_key)
    mine = (
        (GROUPS.c.channel == group.channel)
        & (GROUPS.c.group_key == group.key)
        & (GROUPS.c.revision == kept.revision)
    )
    done = connection.execute(update(GROUPS).where(mine).values(revision=kept.revision + 1, **values))
    return done.rowcount == 1


def notification_of(
    group: Group, decision: Decision, over: Mapping[str, Card], now_ms: int, public_url: str
) -> Notification | None:
    """Return all that can be told; None when nothing is. ``over``: cards of alerts that are over."""
    if decision.cause is None:
        return None
    firing = sorted(decision.firing, key=_urgent_first)
    new = [_taken(alert) for alert in firing if alert.alert_id in decision.changed]
    known = [_taken(alert) for alert in firing if alert.alert_id not in decision.changed]
    cards = [*new, *(over[key] for key in decision.over if key in over), *known]
    if not cards:
        return None
    return Notification(
        group_key=group.key,
        group_labels=group.labels,
        status="firing" if firing else "resolved",
        cause=decision.cause,
        made_ms=now_ms,
        alerts=cards,
        external_url=public_url,
        known=[card.alert_id for card in known],
    )


def _urgent_first(alert: Alert) -> tuple[int, int, str]:
    return _WORST_FIRST.index(alert.card.severity), alert.fired_ms, alert.fingerprint


def _taken(alert: Alert) -> Card:
    return msgspec.structs.replace(alert.card, acked_by=alert.acked_by)
