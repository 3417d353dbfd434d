"""PagerDuty: one event per alert; the alert's id is the deduplication key, so that its resolve closes it.

https://developer.pagerduty.com/docs/events-api-v2-overview: a summary has at most 1,024 characters, a key
255, an event 512 KB.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
from pydantic import Field

from specscope_server.alerts.channels.contract import (
    ChannelConfig,
    ChannelKind,
    Context,
    HttpRequest,
    Message,
)
from specscope_server.alerts.channels.fields import SecretText, Url
from specscope_server.alerts.channels.notification import Card, Notification
from specscope_server.alerts.channels.words import MARK, one_line, rows, shorten, title, when

MAX_SUMMARY = 1_024
MAX_KEY = 255
MAX_EVENT_BYTES = 512_000
MAX_DETAIL = 4_000
LINKS = 10
MAX_HREF = 2_000


class Config(ChannelConfig):
    """Settings."""

    routing_key: SecretText = Field(description="Integration key of an Events API v2 integration.")
    url: Url = Field(
        "https://events.pagerduty.com/v2/enqueue",
        description="In the EU: `https://events.eu.pagerduty.com/v2/enqueue`.",
    )
    per_minute: int = Field(
        120,
        ge=1,
        le=10_000,
        description="Most alerts that are sent in a minute, each by itself.",
    )
    images: bool = Field(
        False,
        description="Point incidents at pictures of the panel. PagerDuty fetches them from the dashboard: "
        "its public URL must be https and open to PagerDuty.",
    )


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return a POST for each alert, those that fire first; a second one for each that somebody took."""
    events = [
        _event(config, notification, card, action)
        for card in notification.alerts
        for action in _actions(card, notification)
    ]
    return [
        HttpRequest(config.url, body, {"content-type": "application/json"}) for body in map(_sized, events)
    ]


def _actions(card: Card, notification: Notification) -> list[str]:
    if card.status == "resolved":
        return ["resolve"]
    taken = ["acknowledge"] if card.acked_by else []
    return taken if notification.cause == "acknowledged" else ["trigger", *taken]


def _event(config: Config, notification: Notification, card: Card, action: str) -> dict[str, Any]:
    event: dict[str, Any] = {
        "routing_key": config.routing_key.get_secret_value(),
        "event_action": action,
        "dedup_key": shorten(card.alert_id, MAX_KEY, ""),
    }
    if action != "trigger":
        return event
    event["client"] = "Specscope"
    if notification.external_url:
        event["client_url"] = notification.external_url
    images = _images(notification, card) if config.images else []
    return {**event, "payload": _payload(card), "links": _links(card), "images": images}


def _payload(card: Card) -> dict[str, Any]:
    details = {"reason": shorten(card.reason, MAX_DETAIL)}
    details |= {name: shorten(text, MAX_DETAIL) for name, text in rows(card)}
    return {
        "summary": shorten(f"{title(card)}: {one_line(card.reason)}", MAX_SUMMARY),
        "source": shorten(one_line(card.labels.get("server", "")) or "specscope", MAX_KEY),
        "severity": card.severity,
        "timestamp": when(card.starts_ms),
        "component": shorten(one_line(card.labels.get("rank", "")), MAX_KEY),
        "group": shorten(one_line(card.labels.get("model", "")), MAX_KEY),
        "class": card.rule,
        "custom_details": details,
    }


def _links(card: Card) -> list[dict[str, str]]:
    links = [(link.title, link.url) for link in card.links]
    links += [("Runbook", card.runbook)] if card.runbook else []
    web = [link for link in links if link[1].startswith(("https://", "http://")) and len(link[1]) <= MAX_HREF]
    return [{"href": url, "text": shorten(one_line(text), MAX_KEY)} for text, url in web[:LINKS]]


def _images(notification: Notification, card: Card) -> list[dict[str, str]]:
    figure = card.figure
    if figure is None or not notification.external_url.startswith("https://"):
        return []
    asked: dict[str, Any] = {"server": figure.server, "from": figure.from_ms, "to": figure.to_ms}
    asked |= {"launch": figure.launch} if figure.launch is not None else {}
    query = urlencode({**asked, "format": "png"})
    source = f"{notification.external_url.rstrip('/')}/api/v1/figures/{figure.name}?{query}"
    return [{"src": source, "alt": title(card), "href": card.links[0].url if card.links else source}]


def _sized(event: dict[str, Any]) -> bytes:
    """Return the event; one that is too large keeps its reason and says that the rest is cut."""
    body = msgspec.json.encode(event)
    if len(body) <= MAX_EVENT_BYTES:
        return body
    details = {"reason": event["payload"]["custom_details"]["reason"], "more": MARK}
    return msgspec.json.encode({**event, "payload": {**event["payload"], "custom_details": details}})


KIND = ChannelKind(
    name="pagerduty",
    title="PagerDuty",
    meaning="Sends events (v2): an incident per alert, acknowledged and resolved together with it.",
    config=Config,
    render=render,
    most_cards=1,  # each event is taken or refused by itself
    others="repeat",
    takes_acknowledgement=True,
)
