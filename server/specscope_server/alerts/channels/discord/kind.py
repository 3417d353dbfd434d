"""Discord: embeds for a webhook, within what Discord documents, with the panel as a picture.

https://docs.discord.com/developers/resources/message#embed-object-embed-limits: 10 embeds; title 256,
description 4,096, 25 fields of 256 and 1,024, 6,000 characters over all embeds. No mention is allowed.
"""

from __future__ import annotations

import re
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
from specscope_server.alerts.channels.words import headline, rows, shorten, state_words, title, when, within

MAX_EMBEDS = 10
MAX_CONTENT = 2_000
MAX_TITLE = 256
MAX_URL = 2_048
MAX_TOTAL = 6_000
MAX_PICTURE_BYTES = 8 * 1024 * 1024
SHOWN_DESCRIPTION, SHOWN_NAME, SHOWN_VALUE, SHOWN_FIELDS = 1_000, 100, 300, 11
"""What one card takes at most, so that several fit."""
PICTURE = "panel.png"
COLOURS = {"critical": 0xD55E00, "warning": 0xE69F00, "info": 0x0072B2}
OVER = 0x009E73
_MARKDOWN = re.compile(r"([\\*_~`|>#\[\]()<@:-])")


class Config(ChannelConfig):
    """Settings."""

    url: SecretUrl = Field(description="URL of a webhook (https://discord.com/api/webhooks/…). A secret.")


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one POST: JSON, or a form with the picture beside it."""
    shown, left_out = within(
        notification.alerts, lambda some, _: len(some) <= MAX_EMBEDS and _length(_embeds(some)) <= MAX_TOTAL
    )
    embeds = _embeds(shown)
    missing = notification.truncated_alerts + left_out
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


def _embeds(cards: list[Card]) -> list[dict[str, Any]]:
    return [_embed(card) for card in cards]


def _embed(card: Card) -> dict[str, Any]:
    fields = [
        {
            "name": shorten(escape(name), SHOWN_NAME),
            "value": shorten(escape(text), SHOWN_VALUE),
            "inline": False,
        }
        for name, text in rows(card)[:SHOWN_FIELDS]
    ]
    embed: dict[str, Any] = {
        "title": shorten(escape(f"{state_words(card)}: {title(card)}"), MAX_TITLE),
        "description": shorten(escape(card.reason), SHOWN_DESCRIPTION),
        "color": COLOURS[card.severity] if card.status == "firing" else OVER,
        "timestamp": when(card.starts_ms),
        "fields": fields,
    }
    url = card.links[0].url if card.links else ""
    if url.startswith(("https://", "http://")) and len(url) <= MAX_URL:
        embed["url"] = url
    return embed


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
    carries_picture=True,
)
