"""Take deliveries from the outbox: each by one process at a time, in order within a group.

Everything about one channel happens under a lock on its row, so that its limits hold over all processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, func, select, update

from specscope_server.alerts.channels import notification as notifications
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.opening import Opened, open_channel
from specscope_server.alerts.delivery.attempting import attempt_seconds
from specscope_server.alerts.delivery.breaker import Breaker, breaker_of
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import CLAIMED, PENDING, WAITING
from specscope_server.alerts.delivery.preparing import prepare
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Channel, Delivery, DeliveryAttempt
from specscope_server.store.engine import write_transaction

MINUTE_MS = 60_000
LEASE_SPARE_MS = 45_000
"""Beyond the time for sending: for a picture, a template, and the database."""
FAR_MS = 7 * 3_600_000
"""No wait is as long. A time further ahead was written before the clock was set back, and nothing waits for
it: else a clock that ran a day ahead for a minute would silence a channel for a day."""
LOOKED_AT = 20
"""Deliveries looked at for one claim: some of them turn out to need no sending."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this process may attempt now."""

    id: int
    webhook_id: str
    channel: str
    notification: Notification
    attempts: int
    """Started so far, this one included: by it and the name of the worker the row is known again."""
    worker: str
    opened: Opened | None
    trouble: str = ""
    """Why the channel could not be opened."""


def due_channels(connection: Connection, now_ms: int) -> list[str]:
    """Return the names of channels that have something to attempt and are on, with a breaker that lets it."""
    due = select(Delivery.channel).where(_is_due(now_ms) | is_left(now_ms)).distinct()
    query = select(Channel.name, Channel.breaker).where(Channel.enabled, Channel.name.in_(due))
    return [
        row.name
        for row in connection.execute(query.order_by(Channel.name))
        if breaker_of(row.breaker).admits_at(now_ms) <= now_ms
    ]


def _is_due(now_ms: int) -> ColumnElement[bool]:
    is_early = Delivery.next_attempt_ms > now_ms
    is_ahead = (Delivery.next_attempt_ms > now_ms + FAR_MS) | (Delivery.created_ms > now_ms + MINUTE_MS)
    return (Delivery.status == PENDING) & (~is_early | is_ahead)


def is_left(now_ms: int) -> ColumnElement[bool]:
    """Claimed by a process that is gone: its time is over, or further ahead than any attempt takes."""
    is_ahead = Delivery.claimed_until_ms > now_ms + FAR_MS
    return (Delivery.status == CLAIMED) & ((Delivery.claimed_until_ms < now_ms) | is_ahead)


def claim(engine: Engine, channel: str, worker: str, now_ms: int, options: DeliveryOptions) -> Claimed | None:
    """Return one delivery of the channel to attempt now; None when there is none, or its limits forbid it."""
    with write_transaction(engine) as connection:
        row = locked(connection, channel)
        if row is None or not row.enabled:
            return None
        take_back(connection, (Delivery.channel == channel) & is_left(now_ms), now_ms)
        breaker = breaker_of(row.breaker)
        opened, trouble = _opened(row, options)
        per_minute = opened.config.per_minute if opened else MINUTE_MS
        if breaker.admits_at(now_ms) > now_ms or _used(connection, channel, now_ms) >= per_minute:
            return None
        head = _next_head(connection, channel, opened, now_ms)
        if head is None:
            return None
        claimed = _mark(connection, head, worker, now_ms, opened, trouble)
        set_breaker(connection, channel, breaker.starting(now_ms))
        return claimed


def locked(connection: Connection, channel: str) -> Row[Any] | None:
    """Return the channel's row, locked until the transaction ends (SQLite locks the whole file)."""
    return connection.execute(
        select(Channel.__table__).where(Channel.name == channel).with_for_update()
    ).one_or_none()


def set_breaker(connection: Connection, channel: str, breaker: Breaker) -> None:
    """Keep the state of a channel's breaker."""
    text = msgspec.json.encode(breaker).decode()
    connection.execute(update(Channel).where(Channel.name == channel).values(breaker=text))


def _opened(row: Row[Any], options: DeliveryOptions) -> tuple[Opened | None, str]:
    try:
        opened = open_channel(row.name, row.kind, row.origin, row.config, row.secrets, options.vault)
    except InvalidInput as error:
        return None, error.detail
    return opened, ""


def take_back(connection: Connection, lost: ColumnElement[bool], now_ms: int) -> None:
    """Free what a process claimed that is gone: it may have sent it before it died."""
    rows = [
        {"delivery_id": number, "at_ms": now_ms, "outcome": "unknown", "status_code": None,
         "latency_ms": None, "reason": "the process that sent it ended before it could say what came of it"}
        for number in connection.scalars(select(Delivery.id).where(lost))
    ]  # fmt: skip
    if rows:
        connection.execute(DeliveryAttempt.__table__.insert(), rows)  # type: ignore[attr-defined]
        connection.execute(
            update(Delivery)
            .where(lost)
            .values(status=PENDING, next_attempt_ms=now_ms, claimed_by=None, claimed_until_ms=None)
        )


def _used(connection: Connection, channel: str, now_ms: int) -> int:
    """Return the attempts of the last minute, those that run included."""
    done = (
        select(func.count())
        .select_from(DeliveryAttempt)
        .join(Delivery, Delivery.id == DeliveryAttempt.delivery_id)
        .where(
            Delivery.channel == channel,
            DeliveryAttempt.at_ms.between(now_ms - MINUTE_MS + 1, now_ms + MINUTE_MS),
        )
    )
    running = select(func.count()).where(Delivery.channel == channel, Delivery.status == CLAIMED)
    return int(connection.scalar(done) or 0) + int(connection.scalar(running) or 0)


def heads(channel: str, now_ms: int) -> Select[Any]:
    """Return what is first of its group and due: a resolve never overtakes its fire."""
    first = (
        select(func.min(Delivery.id))
        .where(Delivery.channel == channel, Delivery.status.in_(WAITING))
        .group_by(Delivery.group_key)
    )
    return (
        select(Delivery.__table__)
        .where(Delivery.id.in_(first), _is_due(now_ms))
        .order_by(Delivery.next_attempt_ms, Delivery.id)
        .limit(LOOKED_AT)
    )


def _next_head(connection: Connection, channel: str, opened: Opened | None, now_ms: int) -> Row[Any] | None:
    """Return the first that is still worth sending; the others are ended or joined on the way."""
    for row in connection.execute(heads(channel, now_ms)).all():
        chosen = prepare(connection, row, opened, now_ms)
        if chosen is not None:
            return chosen
    return None


def _mark(
    connection: Connection, row: Row[Any], worker: str, now_ms: int, opened: Opened | None, trouble: str
) -> Claimed | None:
    notification = notifications.decode(row.notification)
    seconds = attempt_seconds(opened.config.timeout_seconds if opened else 1, len(notification.alerts))
    until_ms = now_ms + round(seconds * 1_000) + LEASE_SPARE_MS
    marked = connection.execute(
        update(Delivery)
        .where(Delivery.id == row.id, Delivery.status == PENDING, Delivery.attempts == row.attempts)
        .values(status=CLAIMED, claimed_by=worker, claimed_until_ms=until_ms, attempts=row.attempts + 1)
    )
    if not marked.rowcount:
        return None
    return Claimed(
        row.id, row.webhook_id, row.channel, notification, row.attempts + 1, worker, opened, trouble
    )
