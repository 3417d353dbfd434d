"""Tell the other channels that one of them fails: who is not told must not believe that all is well.

Once per episode: from the first delivery that is given up, or the breaker that opens, to the next success.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec
from sqlalchemy import Connection, select

from specscope_server.alerts.channels.notification import Card, CardLink, Notification, Status
from specscope_server.alerts.delivery.breaker import Breaker
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import enqueue
from specscope_server.models import Channel

RULE = "channel-failing"


def tell(
    connection: Connection, channel: str, breaker: Breaker, reason: str, now_ms: int, options: DeliveryOptions
) -> Breaker:
    """Return the breaker with the episode noted; write to the other channels when it begins."""
    if breaker.told_ms is not None:
        return breaker
    _enqueue(connection, channel, "firing", now_ms, None, reason, options)
    return msgspec.structs.replace(breaker, told_ms=now_ms)


def tell_recovered(
    connection: Connection, channel: str, breaker: Breaker, now_ms: int, options: DeliveryOptions
) -> None:
    """Write to the other channels that it is over."""
    began_ms = now_ms if breaker.told_ms is None else breaker.told_ms
    _enqueue(connection, channel, "resolved", began_ms, now_ms, "a delivery got through again", options)


def _enqueue(
    connection: Connection, channel: str, status: Status, began_ms: int, ends_ms: int | None, reason: str,
    options: DeliveryOptions,
) -> None:  # fmt: skip
    now_ms = began_ms if ends_ms is None else ends_ms
    card = _card(channel, status, began_ms, ends_ms, reason, options.external_url)
    notification = Notification(
        group_key=f"channel:{channel}",
        group_labels={"channel": channel},
        status=status,
        cause="channel",
        made_ms=now_ms,
        alerts=[card],
        external_url=options.external_url,
    )
    for row in connection.execute(select(Channel.name, Channel.breaker, Channel.enabled)):
        is_well = msgspec.json.decode(row.breaker or "{}", type=Breaker).told_ms is None
        if row.name != channel and row.enabled and (is_well or status == "resolved"):
            enqueue(connection, row.name, notification, now_ms, reason=f"the channel {channel!r} fails")


def _card(
    channel: str, status: Status, began_ms: int, ends_ms: int | None, reason: str, external_url: str
) -> Card:
    fingerprint = sha256(f"{RULE}:{channel}".encode()).hexdigest()[:32]
    links = [CardLink("Channels", f"{external_url.rstrip('/')}/alerts/channels")] if external_url else []
    return Card(
        alert_id=f"{fingerprint}-{began_ms}",
        fingerprint=fingerprint,
        rule=RULE,
        title=f"Alerts do not get through to the channel {channel}",
        severity="critical",
        status=status,
        starts_ms=began_ms,
        ends_ms=ends_ms,
        labels={"channel": channel},
        reason=f"Alerts are not delivered to it: {reason}" if status == "firing" else reason,
        links=links,
    )
