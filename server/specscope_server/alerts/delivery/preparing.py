"""Before a delivery is attempted: is it still worth sending, what of it, and is it taken whole?"""

from __future__ import annotations

from collections.abc import Sequence
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
    enqueue,
    finish,
    known_and_told,
    may_be_taken,
    rewrite,
)
from specscope_server.alerts.delivery.splitting import Room, room_in, split
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Delivery

MOST_JOINED = 200
NEVER_TOLD = "it began and was over before this channel could be told"


def prepare(connection: Connection, row: Row[Any], opened: Opened | None, now_ms: int) -> Row[Any] | None:
    """Return the delivery to attempt: this one, or a newer one of its group that now says more; else None."""
    if row.expires_ms <= now_ms:
        finish(connection, [row.id], EXPIRED, "it could not be delivered in time", now_ms)
        return None
    try:
        waiting = _waiting(connection, row, opened, now_ms)
    except InvalidInput as error:
        finish(connection, [row.id], FAILED, error.detail, now_ms)
        return None
    number = _chosen(connection, row.channel, waiting, opened, now_ms)
    if number is None:
        return None
    return connection.execute(select(Delivery.__table__).where(Delivery.id == number)).one()


def _chosen(
    connection: Connection, channel: str, waiting: Sequence[Waiting], opened: Opened | None, now_ms: int
) -> int | None:
    """Return the id of the delivery to attempt."""
    room = _room(opened)
    if collapse.joinable(waiting, now_ms):
        whole = _worth_sending(connection, channel, collapse.joined(waiting), opened)
        parts = [] if isinstance(whole, str) else split(whole, room)
        if len(parts) < len(waiting):
            reason = whole if isinstance(whole, str) else "joined"
            return _replace(connection, channel, waiting, parts, reason, now_ms)
    head = waiting[0]
    if head.may_be_taken:
        return head.id  # as it was: under one webhook-id a receiver sees one content
    kept = _worth_sending(connection, channel, head.notification, opened)
    if isinstance(kept, str):
        finish(connection, [head.id], COLLAPSED, kept, now_ms)
        return None
    if len(kept.alerts) > room.cards and len(waiting) < MOST_JOINED:
        later = [entry.notification for entry in waiting[1:]]
        return _replace(connection, channel, waiting, [*split(kept, room), *later], "split", now_ms)
    if kept != head.notification:
        rewrite(connection, head.id, kept)
    return head.id


def _replace(
    connection: Connection, channel: str, waiting: Sequence[Waiting], wanted: Sequence[Notification],
    reason: str, now_ms: int,
) -> int | None:  # fmt: skip
    """Have what waits say this instead, in order; return the id of the first that does.

    What was attempted before is not changed: a receiver saw it under its ``webhook-id``.
    """
    fresh = [entry.id for entry in waiting if not entry.attempts]
    ids = fresh[max(len(fresh) - len(wanted), 0) :]
    for number, notification in zip(ids, wanted, strict=False):
        rewrite(connection, number, notification)
    more = wanted[len(ids) :]
    ids += [enqueue(connection, channel, each, now_ms, reason=reason) for each in more]
    others = [entry.id for entry in waiting if entry.id not in ids]
    finish(connection, others, COLLAPSED, f"{reason} into delivery {ids[0]}" if ids else reason, now_ms)
    return ids[0] if ids else None


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


def _room(opened: Opened | None) -> Room:
    return Room() if opened is None else room_in(opened.kind, opened.config)


def _waiting(connection: Connection, head: Row[Any], opened: Opened | None, now_ms: int) -> list[Waiting]:
    """Return what waits in the group of ``head``, oldest first, as far as it may matter now."""
    if not collapse.is_old(head.attempts, head.created_ms, now_ms):
        [alone] = _queued(connection, head, 1)
        if len(alone.notification.alerts) <= _room(opened).cards:
            return [alone]
    return _queued(connection, head, MOST_JOINED)


def _queued(connection: Connection, head: Row[Any], most: int) -> list[Waiting]:
    query = (
        select(
            Delivery.id, Delivery.notification, Delivery.created_ms, Delivery.attempts,
            may_be_taken().label("may_be_taken"),
        )
        .where(
            Delivery.channel == head.channel, Delivery.group_key == head.group_key,
            Delivery.status == PENDING, Delivery.id >= head.id,
        )
        .order_by(Delivery.id)
        .limit(most)
    )  # fmt: skip
    return [
        Waiting(
            row.id, notifications.decode(row.notification), row.created_ms, row.attempts, row.may_be_taken
        )
        for row in connection.execute(query)
    ]
