"""Before a delivery is attempted: is it still worth sending, and what of it?"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from specscope_server.alerts.channels import notification as notifications
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.opening import Opened
from specscope_server.alerts.delivery import collapse
from specscope_server.alerts.delivery.collapse import Waiting
from specscope_server.alerts.delivery.outbox import (
    COLLAPSED,
    EXPIRED,
    FAILED,
    PENDING,
    finish,
    known_and_told,
    rewrite,
)
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Delivery, DeliveryAttempt

MOST_JOINED = 200
NEVER_TOLD = "it began and was over before this channel could be told"


def prepare(connection: Connection, row: Row[Any], opened: Opened | None, now_ms: int) -> Row[Any] | None:
    """Return the delivery to attempt: this one, or the newest of its group that now says all; else None."""
    if row.expires_ms <= now_ms:
        finish(connection, [row.id], EXPIRED, "it could not be delivered in time", now_ms)
        return None
    try:
        waiting = _waiting(connection, row)
    except InvalidInput as error:
        finish(connection, [row.id], FAILED, error.detail, now_ms)
        return None
    chosen = waiting[0]
    notification = chosen.notification
    if collapse.joinable(waiting, now_ms):
        chosen, notification = waiting[-1], collapse.joined(waiting)
    kept = _worth_sending(connection, row.channel, notification, opened)
    others = [entry.id for entry in waiting[:-1] if chosen is not waiting[0]]
    if others:
        finish(connection, others, COLLAPSED, f"joined into delivery {chosen.id}", now_ms)
    if isinstance(kept, str):
        finish(connection, [chosen.id], COLLAPSED, kept, now_ms)
        return None
    if kept != chosen.notification:
        rewrite(connection, chosen.id, kept)
    return connection.execute(select(Delivery.__table__).where(Delivery.id == chosen.id)).one()


def _worth_sending(
    connection: Connection, channel: str, notification: Notification, opened: Opened | None
) -> Notification | str:
    """Return what of it is to be sent, or why nothing is."""
    ids = [card.alert_id for card in notification.resolved]
    known, told = known_and_told(connection, channel, ids) if ids else (set(), set())
    kept = collapse.without_untold(notification, known, told)
    if kept is None:
        return NEVER_TOLD
    if opened is None:
        return kept
    if kept.cause == "acknowledged" and not opened.kind.takes_acknowledgement:
        return f"a {opened.kind.name} has no word for acknowledgements"
    if not opened.config.send_resolved:
        return collapse.without_resolved(kept) or "this channel is not told of ends (send_resolved)"
    return kept


def _waiting(connection: Connection, head: Row[Any]) -> list[Waiting]:
    """Return what waits in the group of ``head``, oldest first, as far as it may be looked at now."""
    unanswered = (
        select(DeliveryAttempt.id)
        .where(DeliveryAttempt.delivery_id == Delivery.id, DeliveryAttempt.outcome == "unknown")
        .exists()
    )
    query = (
        select(
            Delivery.id, Delivery.notification, Delivery.created_ms, Delivery.attempts,
            unanswered.label("unanswered"),
        )
        .where(
            Delivery.channel == head.channel, Delivery.group_key == head.group_key,
            Delivery.status == PENDING, Delivery.id >= head.id,
        )
        .order_by(Delivery.id)
        .limit(MOST_JOINED)
    )  # fmt: skip
    return [
        Waiting(row.id, notifications.decode(row.notification), row.created_ms, row.attempts, row.unanswered)
        for row in connection.execute(query)
    ]
