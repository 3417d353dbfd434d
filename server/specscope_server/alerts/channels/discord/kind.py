"""Discord: embeds for a webhook, within what Discord documents, with the panel as a picture.

https://docs.discord.com/developers/resources/message#embed-object-embed-limits: 10 embeds; title 256,
description 4,096, 25 fields of 256 and 1,024, 6,000 characters over all embeds. No mention is allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import Field

from specscope_server.alerts.channels.contract import (
    ChannelConfig,
    ChannelKind,
    Context,
    HttpRequest,
    Message,
)
from specscope_server.alerts.channels.discord.multipart import multipart
from specscope_server.alerts.channels.fields import SecretUrl
from specscope_server.alerts.channels.notification import Card, Notification
from specscope_server.alerts.channels.words import (
    headline,
    one_line,
    roomiest,
    rows,
    shorten,
    state_words,
    title,
    when,
    where_words,
)

MAX_EMBEDS = 10
MAX_CONTENT = 2_000
MAX_TITLE = 256
MAX_URL = 2_048
MAX_TOTAL = 6_000
MAX_PICTURE_BYTES = 8 * 1024 * 1024
PICTURE = "panel.png"
COLOURS = {"critical": 0xD55E00, "warning": 0xE69F00, "info": 0x0072B2}
OVER = 0x009E73
_MARKDOWN = re.compile(r"([\\*_~`|>#\[\]()<@:-])")


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a card is shown; characters."""

    title: int
    reason: int
    fields: int
    name: int
    value: int


SHAPES = (
    Shape(256, 1_000, 11, 100, 300),
    Shape(256, 500, 4, 60, 150),
    Shape(160, 160, 1, 20, 160),
)
"""The roomiest in which all cards fit is taken; in the last one `MAX_EMBEDS` do, whatever they say."""


class Config(ChannelConfig):
    """Settings."""

    url: SecretUrl = Field(description="URL of a webhook (https://discord.com/api/webhooks/…). A secret.")


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one POST: JSON, or a form with the picture beside it."""
    embeds = roomiest(notification.alerts, SHAPES, lambda some, shape, _: _embeds(some, shape), _fits)
    missing = notification.truncated_alerts + len(notification.alerts) - len(embeds)
    content = escape(headline(notification)) + (
        f"\n… [cut] {missing} more alerts not shown" if missing else ""
    )
    body: dict[str, Any] = {
        "content": shorten(content, MAX_CONTENT),
        "embeds": embeds,
        "allowed_mentions": {"parse": []},
    }
    url = config.url.get_secret_value()
    if context.picture is None or len(context.picture) > MAX_PICTURE_BYTES:
        return [HttpRequest(url, msgspec.json.encode(body), {"content-type": "application/json"})]
    embeds[0]["image"] = {"url": f"attachment://{PICTURE}"}
    body["attachments"] = [{"id": 0, "filename": PICTURE, "description": "The panel of the first alert"}]
    content_type, form = multipart(msgspec.json.encode(body), PICTURE, context.picture, context.webhook_id)
    return [HttpRequest(url, form, {"content-type": content_type})]


def escape(text: str) -> str:
    """Return the text with Markdown's characters as they are."""
    return _MARKDOWN.sub(r"\\\1", text)


def _embeds(cards: list[Card], shape: Shape) -> list[dict[str, Any]]:
    return [_embed(card, shape) for card in cards]


def _embed(card: Card, shape: Shape) -> dict[str, Any]:
    facts = rows(card)[: shape.fields] if shape.fields > 1 else [("Labels", where_words(card) or "none")]
    fields = [
        {
            "name": shorten(escape(name), shape.name),
            "value": shorten(escape(text), shape.value),
            "inline": False,
        }
        for name, text in facts
    ]
    reason = card.reason if shape.fields > 1 else one_line(card.reason)
    embed: dict[str, Any] = {
        "title": shorten(escape(f"{state_words(card)}: {title(card)}"), shape.title),
        "description": shorten(escape(reason), shape.reason),
        "color": COLOURS[card.severity] if card.status == "firing" else OVER,
        "timestamp": when(card.starts_ms),
        "fields": fields,
    }
    url = card.links[0].url if card.links else ""
    if url.startswith(("https://", "http://")) and len(url) <= MAX_URL:
        embed["url"] = url
    return embed


def _fits(embeds: list[dict[str, Any]]) -> bool:
    return len(embeds) <= MAX_EMBEDS and _length(embeds) <= MAX_TOTAL


def _length(embeds: list[dict[str, Any]]) -> int:
    """Return the characters that Discord counts."""
    return sum(
        len(embed["title"]) + len(embed["description"])
        + sum(len(field["name"]) + len(field["value"]) for field in embed["fields"])
        for embed in embeds
    )  # fmt: skip


KIND = ChannelKind(
    name="discord",
    title="Discord",
    meaning="POSTs embeds to a webhook of Discord, with the panel as a picture.",
    config=Config,
    render=render,
    most_cards=MAX_EMBEDS,
    carries_picture=True,
)
