"""Tell the other channels that one of them fails: who is not told must not believe that all is well.

Once per episode: from the first delivery that is given up, or the breaker that opens, to the next success, or
until nothing is sent to it any more (turned off, removed). A channel that was changed or turned on again is
still in its episode: whether that helped, the next delivery shows. The end is told to those that were told of
the beginning. Tests begin no episode: whoever tries a channel sees what comes of it.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec
from sqlalchemy import Connection, select

from specscope_server.alerts.channels import notification as notifications
from specscope_server.alerts.channels.notification import Card, CardLink, Notification
from specscope_server.alerts.delivery.breaker import Breaker, breaker_of
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import enqueue
from specscope_server.models import Channel, Delivery, DeliveryAlert

RULE = "channel-failing"
GOT_THROUGH = "a delivery got through again"


def anew(text: str) -> str:
    """Return the breaker for the row of a channel that was changed or turned on: its episode goes on."""
    return msgspec.json.encode(Breaker(told_ms=breaker_of(text).told_ms)).decode()


def tell(
    connection: Connection, channel: str, breaker: Breaker, reason: str, now_ms: int, options: DeliveryOptions
) -> Breaker:
    """Return the breaker with the episode noted; write to the other channels when it begins."""
    if breaker.told_ms is not None:
        return breaker
    notification = _begun(channel, now_ms, reason, options.external_url)
    for row in connection.execute(select(Channel.name, Channel.breaker).where(Channel.enabled)):
        if row.name != channel and breaker_of(row.breaker).told_ms is None:
            enqueue(connection, row.name, notification, now_ms, reason=f"the channel {channel!r} fails")
    return msgspec.structs.replace(breaker, told_ms=now_ms)


def tell_over(connection: Connection, channel: str, breaker: Breaker, reason: str, now_ms: int) -> None:
    """Write to the channels that were told of the episode, if there is one, that it is over."""
    if breaker.told_ms is None:
        return
    alert_id = _alert_id(channel, breaker.told_ms)
    told = (
        select(Delivery.channel, Delivery.notification)
        .join(DeliveryAlert, DeliveryAlert.delivery_id == Delivery.id)
        .join(Channel, Channel.name == Delivery.channel)
        .where(DeliveryAlert.alert_id == alert_id, DeliveryAlert.status == "firing")
        .order_by(Delivery.id)
    )
    for name, text in {row.channel: row.notification for row in connection.execute(told)}.items():
        over = _ended(notifications.decode(text), alert_id, reason, now_ms)
        enqueue(connection, name, over, now_ms, reason=f"the channel {channel!r} failed")


def _ended(begun: Notification, alert_id: str, reason: str, now_ms: int) -> Notification:
    card = next(card for card in begun.alerts if card.alert_id == alert_id)
    ended = msgspec.structs.replace(card, status="resolved", ends_ms=now_ms, reason=reason)
    return msgspec.structs.replace(begun, status="resolved", made_ms=now_ms, alerts=[ended])


def _begun(channel: str, now_ms: int, reason: str, external_url: str) -> Notification:
    links = [CardLink("Channels", f"{external_url.rstrip('/')}/alerts/channels")] if external_url else []
    card = Card(
        alert_id=_alert_id(channel, now_ms),
        fingerprint=_fingerprint(channel),
        rule=RULE,
        title=f"Alerts do not get through to the channel {channel}",
        severity="critical",
        status="firing",
        starts_ms=now_ms,
        labels={"channel": channel},
        reason=f"Alerts are not delivered to it: {reason}",
        links=links,
    )
    return Notification(
        group_key=f"channel:{channel}", group_labels={"channel": channel}, status="firing", cause="channel",
        made_ms=now_ms, alerts=[card], external_url=external_url,
    )  # fmt: skip


def _fingerprint(channel: str) -> str:
    return sha256(f"{RULE}:{channel}".encode()).hexdigest()[:32]


def _alert_id(channel: str, began_ms: int) -> str:
    return f"{_fingerprint(channel)}-{began_ms}"
