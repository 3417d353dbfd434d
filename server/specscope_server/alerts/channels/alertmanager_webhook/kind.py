"""Alertmanager webhook: the body, version 4, that Alertmanager sends to its webhook receivers.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import Field

from specscope_server.alerts.channels.alertmanager.kind import headers_of
from specscope_server.alerts.channels.alertmanager.labels import annotations_of, labels_of, link_of
from specscope_server.alerts.channels.contract import (
    ChannelConfig,
    ChannelKind,
    Context,
    HttpRequest,
    Message,
)
from specscope_server.alerts.channels.fields import SecretHeader, Url
from specscope_server.alerts.channels.notification import Card, Notification
from specscope_server.alerts.channels.words import when

MAX_CARDS = 100
NOT_OVER = "0001-01-01T00:00:00Z"
"""How Alertmanager writes that an alert has no end yet."""


class Config(ChannelConfig):
    """Settings."""

    url: Url = Field(description="Where to POST. Shown to readers.")
    authorization: SecretHeader | None = Field(
        None, description="Value of the Authorization header, e.g. `Bearer …`."
    )
    max_alerts: int = Field(
        0,
        ge=0,
        le=1_000,
        description=f"Most alerts in one message; 0 = {MAX_CARDS}. What is new and more than that goes into "
        "further messages.",
    )


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one POST."""
    shown = notification.alerts[: config.max_alerts or None]
    alerts = [_alert(card, notification) for card in shown]
    body = {
        "version": "4",
        "groupKey": notification.group_key,
        "truncatedAlerts": notification.truncated_alerts + len(notification.alerts) - len(shown),
        "status": notification.status,
        "receiver": context.channel,
        "groupLabels": notification.group_labels,
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": notification.external_url,
        "alerts": alerts,
    }
    return [HttpRequest(config.url, msgspec.json.encode(body), headers_of(config.authorization))]


def _alert(card: Card, notification: Notification) -> dict[str, Any]:
    is_over = card.status == "resolved" and card.ends_ms is not None
    return {
        "status": card.status,
        "labels": labels_of(card),
        "annotations": annotations_of(card),
        "startsAt": when(card.starts_ms),
        "endsAt": when(card.ends_ms or 0) if is_over else NOT_OVER,
        "generatorURL": link_of(card, notification.external_url),
        "fingerprint": card.fingerprint,
    }


def _common(maps: list[dict[str, str]]) -> dict[str, str]:
    first = maps[0] if maps else {}
    return {name: text for name, text in first.items() if all(other.get(name) == text for other in maps)}


KIND = ChannelKind(
    name="alertmanager_webhook",
    title="Alertmanager webhook",
    meaning="POSTs the body (version 4) that Alertmanager sends to webhooks, for receivers that read that.",
    config=Config,
    render=render,
    most_cards=MAX_CARDS,
    most_cards_setting="max_alerts",
)
