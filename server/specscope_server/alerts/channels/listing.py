"""Channels, kinds and deliveries as the API shows them."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec
from pydantic_core import PydanticUndefined
from sqlalchemy import Connection, Row, func, select

from specscope_server.alerts.channels import notification as notifications
from specscope_server.alerts.channels.contract import ChannelConfig
from specscope_server.alerts.channels.kinds import kinds
from specscope_server.alerts.channels.schemas import (
    AttemptItem,
    BreakerItem,
    ChannelItem,
    ChannelList,
    DeliveryDetail,
    DeliveryItem,
    DeliveryList,
    KindField,
    KindItem,
    KindList,
)
from specscope_server.alerts.channels.secrets import secret_fields
from specscope_server.alerts.channels.stored import find, shown_settings
from specscope_server.alerts.channels.words import headline
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.timeparse import iso_or_none, to_iso
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Channel, Delivery, DeliveryAttempt

STATUSES = ("pending", "claimed", "sent", "failed", "expired", "collapsed")
WAITING = STATUSES[:2]


def list_channels(connection: Connection) -> ChannelList:
    """Return all channels."""
    rows = connection.execute(select(Channel.__table__).order_by(Channel.name)).all()
    return ChannelList(channels=[_channel(connection, row) for row in rows])


def get_channel(connection: Connection, name: str) -> ChannelItem:
    """Return one channel. Raises `NotFound`."""
    return _channel(connection, find(connection, name))


def _channel(connection: Connection, row: Row[Any]) -> ChannelItem:
    mine = Delivery.channel == row.name
    waiting = connection.scalar(select(func.count()).where(mine, Delivery.status.in_(WAITING)))
    sent_ms = connection.scalar(select(func.max(Delivery.finished_ms)).where(mine, Delivery.status == "sent"))
    failure = connection.execute(
        select(DeliveryAttempt.at_ms, DeliveryAttempt.reason)
        .join(Delivery, Delivery.id == DeliveryAttempt.delivery_id)
        .where(mine, DeliveryAttempt.outcome != "delivered")
        .order_by(DeliveryAttempt.id.desc())
        .limit(1)
    ).one_or_none()
    return ChannelItem(
        name=row.name, kind=row.kind, origin=row.origin, enabled=row.enabled,
        disabled_reason=row.disabled_reason, settings=shown_settings(row), breaker=_breaker(row.breaker),
        waiting=waiting or 0, last_sent=iso_or_none(sent_ms),
        last_failure=iso_or_none(failure.at_ms if failure else None),
        last_failure_reason=failure.reason if failure else "", updated=to_iso(row.updated_ms),
    )  # fmt: skip


def _breaker(text: str) -> BreakerItem:
    """Read what `delivery.breaker` wrote."""
    kept = msgspec.json.decode(text or "{}", type=dict)
    return BreakerItem(
        state=kept.get("state", "closed"),
        failures=kept.get("failures", 0),
        until=iso_or_none(kept.get("until_ms") or None),
        failing_since=iso_or_none(kept.get("told_ms")),
    )


def list_kinds() -> KindList:
    """Return the kinds with their settings."""
    return KindList(
        kinds=[
            KindItem(
                name=kind.name, title=kind.title, meaning=kind.meaning, carries_picture=kind.carries_picture,
                fields=fields_of(kind.config),
            )
            for kind in kinds().values()
        ]
    )  # fmt: skip


def fields_of(config: type[ChannelConfig]) -> list[KindField]:
    """Return the settings of a kind: its own first, then those that all kinds have."""
    common = ChannelConfig.model_fields
    names = [name for name in config.model_fields if name not in common] + list(common)
    secret = secret_fields(config)
    return [_field(config, name, name in secret) for name in names]


def _field(config: type[ChannelConfig], name: str, is_secret: bool) -> KindField:
    field = config.model_fields[name]
    default = field.get_default(call_default_factory=True, validated_data={})
    return KindField(
        name=name, is_secret=is_secret, is_required=field.is_required(),
        default=None if default is PydanticUndefined else default, meaning=field.description or "",
        one_of=list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else None,
        type=_type_of(field.annotation),
    )  # fmt: skip


def _type_of(annotation: Any) -> str:
    origin = get_origin(annotation) or annotation
    simple = {bool: "truth", int: "number", float: "number", list: "list", dict: "map"}
    return simple.get(origin, "text")


def list_deliveries(
    connection: Connection, channel: str | None, status: str | None, limit: int, cursor: str | None
) -> DeliveryList:
    """Return a page of the delivery log. Raises `InvalidInput`."""
    if status is not None and status not in STATUSES:
        raise InvalidInput(f"status={status[:40]!r} is none; use {', '.join(STATUSES)}")
    query = select(Delivery.__table__).order_by(Delivery.id.desc()).limit(limit + 1)
    if channel is not None:
        query = query.where(Delivery.channel == channel)
    if status is not None:
        query = query.where(Delivery.status == status)
    after = decode_cursor(cursor, (int,))
    if after is not None:
        query = query.where(Delivery.id < after[0])
    rows = connection.execute(query).all()
    more = encode_cursor([rows[limit - 1].id]) if len(rows) > limit else None
    return DeliveryList(deliveries=[DeliveryItem(**_delivery(row)) for row in rows[:limit]], next_cursor=more)


def get_delivery(connection: Connection, number: int) -> DeliveryDetail:
    """Return one delivery with its attempts. Raises `NotFound`."""
    row = connection.execute(select(Delivery.__table__).where(Delivery.id == number)).one_or_none()
    if row is None:
        raise NotFound(f"there is no delivery {number}; see /api/v1/alerts/deliveries")
    attempts = connection.execute(
        select(DeliveryAttempt.__table__)
        .where(DeliveryAttempt.delivery_id == number)
        .order_by(DeliveryAttempt.id)
    )
    log = [
        AttemptItem(
            at=to_iso(each.at_ms), outcome=each.outcome, status_code=each.status_code,
            latency_ms=each.latency_ms, reason=each.reason,
        )
        for each in attempts
    ]  # fmt: skip
    told = msgspec.json.decode(row.notification, type=dict)
    return DeliveryDetail(**_delivery(row), attempt_log=log, notification=told)


def _delivery(row: Row[Any]) -> dict[str, Any]:
    try:
        title = headline(notifications.decode(row.notification))
    except InvalidInput:
        title = "(cannot be read)"
    is_waiting = row.status in WAITING
    return {
        "id": row.id, "webhook_id": row.webhook_id, "channel": row.channel, "group_key": row.group_key,
        "cause": row.cause, "status": row.status, "reason": row.reason, "title": title,
        "attempts": row.attempts, "created": to_iso(row.created_ms), "finished": iso_or_none(row.finished_ms),
        "next_attempt": to_iso(row.next_attempt_ms) if is_waiting else None,
        "body_sha256": row.body_sha256,
    }  # fmt: skip
