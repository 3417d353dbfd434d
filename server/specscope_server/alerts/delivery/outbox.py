"""The outbox: notifications to be delivered, as rows. Whoever decides writes them in its own transaction."""

from __future__ import annotations

import secrets

import msgspec
from sqlalchemy import Connection, Exists, delete, select, update

from specscope_server.alerts.channels.notification import Notification
from specscope_server.models import Delivery, DeliveryAlert, DeliveryAttempt

PENDING, CLAIMED = "pending", "claimed"
SENT, FAILED, EXPIRED, COLLAPSED = "sent", "failed", "expired", "collapsed"
WAITING = (PENDING, CLAIMED)
TAKEN = ("delivered", "unknown")
"""Outcomes of attempts after which the receiver has it, or may have."""
LIFETIME_MS = 24 * 3_600_000
"""After which a notification that could not be delivered is given up: a day later it is no news."""


def new_webhook_id() -> str:
    """Return an id of 128 random bits."""
    return f"msg_{secrets.token_hex(16)}"


def enqueue(
    connection: Connection, channel: str, notification: Notification, now_ms: int, *, reason: str = "",
    lifetime_ms: int = LIFETIME_MS, status: str = PENDING,
) -> int:  # fmt: skip
    """Write one delivery, due now; return its id."""
    row = {
        "webhook_id": new_webhook_id(),
        "channel": channel,
        "group_key": notification.group_key,
        "cause": notification.cause,
        "notification": msgspec.json.encode(notification).decode(),
        "status": status,
        "reason": reason,
        "attempts": 0,
        "next_attempt_ms": now_ms,
        "created_ms": now_ms,
        "expires_ms": now_ms + lifetime_ms,
    }
    result = connection.execute(Delivery.__table__.insert().values(row))  # type: ignore[attr-defined]
    assert result.inserted_primary_key is not None
    number = int(result.inserted_primary_key[0])
    _note_alerts(connection, number, notification)
    return number


def rewrite(connection: Connection, delivery_id: int, notification: Notification) -> None:
    """Change what a delivery that was not attempted yet will say."""
    values = {"notification": msgspec.json.encode(notification).decode(), "cause": notification.cause}
    connection.execute(update(Delivery).where(Delivery.id == delivery_id).values(values))
    connection.execute(delete(DeliveryAlert).where(DeliveryAlert.delivery_id == delivery_id))
    _note_alerts(connection, delivery_id, notification)


def finish(connection: Connection, ids: list[int], status: str, reason: str, now_ms: int) -> None:
    """End deliveries that wait."""
    connection.execute(
        update(Delivery)
        .where(Delivery.id.in_(ids), Delivery.status.in_(WAITING))
        .values(status=status, reason=reason, finished_ms=now_ms, claimed_by=None, claimed_until_ms=None)
    )


def known_and_told(connection: Connection, channel: str, ids: list[str]) -> tuple[set[str], set[str]]:
    """Return (alerts that some delivery to this channel calls firing, those that the receiver may know)."""
    firing = (
        select(DeliveryAlert.alert_id, Delivery.status, may_be_taken().label("may_be_taken"))
        .join(Delivery, Delivery.id == DeliveryAlert.delivery_id)
        .where(Delivery.channel == channel, DeliveryAlert.alert_id.in_(ids), DeliveryAlert.status == "firing")
    )
    rows = connection.execute(firing).all()
    told = {row.alert_id for row in rows if row.status == SENT or row.may_be_taken}
    return {row.alert_id for row in rows}, told


def may_be_taken() -> Exists:
    """Return whether some attempt of a delivery got there, or may have: also of one that is sent again."""
    return (
        select(DeliveryAttempt.id)
        .where(DeliveryAttempt.delivery_id == Delivery.id, DeliveryAttempt.outcome.in_(TAKEN))
        .exists()
    )


def _note_alerts(connection: Connection, delivery_id: int, notification: Notification) -> None:
    seen = {card.alert_id: card.status for card in notification.alerts}
    rows = [{"delivery_id": delivery_id, "alert_id": key, "status": status} for key, status in seen.items()]
    if rows:
        connection.execute(DeliveryAlert.__table__.insert(), rows)  # type: ignore[attr-defined]
