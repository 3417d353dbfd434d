"""Alertmanager: alerts posted to its API v2, so that a team keeps its own routes.

An Alertmanager forgets an alert when its ``endsAt`` has passed: a firing one is given one far enough ahead
for the next repeat to come first.
"""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import Field, SecretStr

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

PATH = "/api/v2/alerts"
MAX_CARDS = 100
"""It has no limit: for messages of a bounded size."""


class Config(ChannelConfig):
    """Settings."""

    url: Url = Field(description=f"Base URL of the Alertmanager; `{PATH}` is added.")
    authorization: SecretHeader | None = Field(
        None, description="Value of the Authorization header, e.g. `Bearer …`."
    )
    valid_seconds: int = Field(
        86_400,
        ge=300,
        le=30 * 86_400,
        description="A firing alert ends there if it is not repeated; it is, after half of this at most.",
    )


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one POST with all alerts."""
    cards = [each for card in notification.alerts for each in (*_former(card, context.now_ms), card)]
    alerts = [_alert(card, notification, context, config.valid_seconds) for card in cards]
    url = config.url.rstrip("/").removesuffix(PATH) + PATH
    return [HttpRequest(url, msgspec.json.encode(alerts), headers_of(config.authorization))]


def _former(card: Card, now_ms: int) -> list[Card]:
    """Return the card with each set of labels it had: for an Alertmanager those are alerts of their own."""
    return [
        msgspec.structs.replace(
            card, labels=labels, severity=labels.get("severity", card.severity), status="resolved",
            ends_ms=card.ends_ms or now_ms,
        )
        for labels in card.former
    ]  # fmt: skip


def headers_of(authorization: SecretStr | None) -> dict[str, str]:
    """Return the headers of a JSON request."""
    known = {"authorization": authorization.get_secret_value()} if authorization else {}
    return {"content-type": "application/json", **known}


def _alert(card: Card, notification: Notification, context: Context, valid_seconds: int) -> dict[str, Any]:
    ends_ms = context.now_ms + valid_seconds * 1_000
    if card.status == "resolved":
        # It must not end before it began, and one that ends later than now would still fire.
        ends_ms = min(max(card.ends_ms or context.now_ms, card.starts_ms + 1), context.now_ms)
    return {
        "labels": labels_of(card),
        "annotations": annotations_of(card),
        "startsAt": when(min(card.starts_ms, ends_ms)),
        "endsAt": when(ends_ms),
        "generatorURL": link_of(card, notification.external_url),
    }


KIND = ChannelKind(
    name="alertmanager",
    title="Alertmanager",
    meaning="POSTs alerts to the API v2 of a Prometheus Alertmanager, which routes them as it routes others.",
    config=Config,
    render=render,
    most_cards=MAX_CARDS,
    others="always",  # it forgets those that are not repeated
    valid_setting="valid_seconds",
)
