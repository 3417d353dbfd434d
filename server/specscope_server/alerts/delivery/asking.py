"""What people ask of the outbox: try a channel now, send one again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Engine, select, union, update

from specscope_server.alerts.channels.notification import Card, CardLink, CardValue, Notification
from specscope_server.alerts.channels.opening import open_channel
from specscope_server.alerts.delivery.attempting import attempt_seconds
from specscope_server.alerts.delivery.claiming import LEASE_SPARE_MS, Claimed, locked
from specscope_server.alerts.delivery.delivering import attempt_claimed
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import (
    CLAIMED,
    COLLAPSED,
    LIFETIME_MS,
    PENDING,
    WAITING,
    enqueue,
    new_webhook_id,
)
from specscope_server.alerts.states.machine import State
from specscope_server.kit.clock import Clock
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.models import AlertTransition, Audit, Delivery, DeliveryAlert
from specscope_server.store.engine import write_transaction


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of the test button."""

    delivery_id: int
    outcome: str
    reason: str
    status_code: int | None
    latency_ms: int


def try_channel(engine: Engine, name: str, worker: str, clock: Clock, options: DeliveryOptions) -> Tried:
    """Send a test notification now, once, whatever the channel's breaker and limits say.

    A disabled channel can be tested. Raises `NotFound`, and `InvalidInput` if it cannot be opened.
    """
    now_ms = clock()
    with write_transaction(engine) as connection:
        row = locked(connection, name)
        if row is None:
            raise NotFound(f"there is no channel {name[:60]!r}; see /api/v1/alerts/channels")
        opened = open_channel(row.name, row.kind, row.origin, row.config, row.secrets, options.vault)
        notification = trial_notification(name, now_ms, options.external_url)
        number = enqueue(connection, name, notification, now_ms, reason="test", status=CLAIMED)
        until_ms = now_ms + round(attempt_seconds(opened.config.timeout_seconds, 1) * 1_000) + LEASE_SPARE_MS
        connection.execute(
            update(Delivery)
            .where(Delivery.id == number)
            .values(attempts=1, claimed_by=worker, claimed_until_ms=until_ms)
        )
        webhook_id = connection.scalar(select(Delivery.webhook_id).where(Delivery.id == number))
    claimed = Claimed(number, str(webhook_id), name, notification, 1, worker, opened)
    attempted, _ = attempt_claimed(engine, claimed, clock, options, is_last=True)
    return Tried(number, attempted.outcome, attempted.reason, attempted.status_code, attempted.latency_ms)


def trial_notification(channel: str, now_ms: int, external_url: str) -> Notification:
    """Return a notification that says of itself that it is a test."""
    links = [CardLink("Dashboard", external_url)] if external_url else []
    card = Card(
        alert_id=new_webhook_id().replace("msg_", "test_"),
        fingerprint="0" * 32,
        rule="channel-test",
        title="Test of this channel",
        severity="info",
        status="firing",
        starts_ms=now_ms,
        labels={"channel": channel, "test": "true"},
        reason="Somebody pressed the test button. Nothing is wrong.",
        values=[CardValue("Example value", 2.1, "tokens per cycle", 2.0, 2.2)],
        links=links,
    )
    return Notification(
        group_key=f"test:{card.alert_id}", group_labels={"channel": channel}, status="firing", cause="test",
        made_ms=now_ms, alerts=[card], external_url=external_url,
    )  # fmt: skip


def replay(engine: Engine, delivery_id: int, now_ms: int, actor: str) -> None:
    """Have a delivery that ended sent again, with its old webhook-id. Raises `NotFound`, `InvalidInput`.

    One that says of an alert that it fires which is over is refused: PagerDuty and Alertmanager would open it
    again, and nothing would close it.
    """
    with write_transaction(engine) as connection:
        _check_again(connection, delivery_id)
        _due_again(connection, delivery_id, now_ms)
        connection.execute(
            Audit.__table__.insert().values(  # type: ignore[attr-defined]
                at_ms=now_ms, actor=actor, action="delivery.replay", target=str(delivery_id)
            )
        )


def _check_again(connection: Connection, delivery_id: int) -> None:
    row = connection.execute(
        select(Delivery.channel, Delivery.status, Delivery.reason).where(Delivery.id == delivery_id)
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no delivery {delivery_id}; see /api/v1/alerts/deliveries")
    if row.status in WAITING:
        raise InvalidInput(f"delivery {delivery_id} is {row.status}: it is being sent anyway")
    if row.status == COLLAPSED:
        raise InvalidInput(f"delivery {delivery_id} was not sent by itself ({row.reason}); replay that one")
    over = _over(connection, delivery_id, row.channel)
    if over:
        count = f"{len(over)} alerts that are over" if len(over) > 1 else "1 alert that is over"
        raise InvalidInput(
            f"delivery {delivery_id} says that it fires of {count} ({', '.join(over[:3])}): sent again it "
            "would open it anew, and nothing would end it; replay the delivery that tells of the end"
        )


def _over(connection: Connection, delivery_id: int, channel: str) -> list[str]:
    """Return the alerts that a delivery calls firing and that are over, as far as anybody knows."""
    fires = (
        select(DeliveryAlert.alert_id)
        .where(DeliveryAlert.delivery_id == delivery_id, DeliveryAlert.status == "firing")
        .scalar_subquery()
    )
    ended = select(AlertTransition.alert_id).where(
        AlertTransition.alert_id.in_(fires), AlertTransition.to_state == State.RESOLVED.value
    )
    told_over = (
        select(DeliveryAlert.alert_id)
        .join(Delivery, Delivery.id == DeliveryAlert.delivery_id)
        .where(
            Delivery.channel == channel, DeliveryAlert.alert_id.in_(fires), DeliveryAlert.status == "resolved"
        )
    )
    return sorted({key for key in connection.scalars(union(ended, told_over)) if key is not None})


def _due_again(connection: Connection, delivery_id: int, now_ms: int) -> None:
    connection.execute(
        update(Delivery)
        .where(Delivery.id == delivery_id)
        .values(
            status=PENDING,
            attempts=0,
            next_attempt_ms=now_ms,
            expires_ms=now_ms + LIFETIME_MS,
            finished_ms=None,
            reason="replayed",
        )
    )
