"""Slack: blocks for an incoming webhook, within what Slack documents.

https://docs.slack.dev/reference/block-kit/blocks: at most 50 blocks; a header 150 characters, a section's
text 3,000 and each of its 10 fields 2,000, a button's text 75. Untrusted text is plain or escaped: it
can make neither links nor mentions.
"""

from __future__ import annotations

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
    where_words,
)

MAX_BLOCKS = 50
MAX_HEADER = 150
MAX_SECTION = 3_000
MAX_FIELD = 2_000
FIELDS = 10
MAX_BUTTON = 75
BUTTONS = 5
MAX_BUTTON_URL = 3_000
MAX_TEXT = 3_000
MAX_TOTAL = 12_000
"""Characters of all blocks: Slack refuses a message with more than about 13,200 (not documented)."""
MAX_CARDS = 10


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a card is shown; characters."""

    reason: int
    fields: int
    field: int
    buttons: int


SHAPES = (Shape(2_900, FIELDS, 400, BUTTONS), Shape(600, 6, 200, 2), Shape(160, 0, 0, 1), Shape(160, 0, 0, 0))
"""The roomiest in which all cards fit is taken; in the last one `MAX_CARDS` do, whatever they say."""
MAX_WHICH = 120
MAX_HEAD = 80


class Config(ChannelConfig):
    """Settings."""

    url: SecretUrl = Field(
        description="URL of an incoming webhook (https://hooks.slack.com/services/…). A secret."
    )
    mention: str = Field(
        "",
        max_length=100,
        pattern=r"^(<!(here|channel)>|<@[A-Z0-9]+>|<!subteam\^[A-Z0-9]+>)?$",
        description="Mentioned while a critical alert fires: `<!here>`, `<@U0123>` or `<!subteam^S0123>`.",
    )


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one POST."""
    blocks = roomiest(
        notification.alerts, SHAPES, lambda some, shape, left: _blocks(notification, some, shape, left), _fits
    )
    if config.mention and notification.firing and notification.severity == "critical":
        blocks.insert(1, {"type": "section", "text": {"type": "mrkdwn", "text": config.mention}})
    body = {"text": shorten(escape(headline(notification)), MAX_TEXT), "blocks": blocks}
    headers = {"content-type": "application/json; charset=utf-8"}
    return [HttpRequest(config.url.get_secret_value(), msgspec.json.encode(body), headers)]


def escape(text: str) -> str:
    """Return the text without Slack's control characters: else a label could mention everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _fits(blocks: list[dict[str, Any]]) -> bool:
    return len(blocks) < MAX_BLOCKS and len(msgspec.json.encode(blocks).decode()) <= MAX_TOTAL


def _blocks(
    notification: Notification, cards: list[Card], shape: Shape, left_out: int
) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(shorten(headline(notification), MAX_HEADER))}
    ]
    for card in cards:
        blocks += _card(card, shape)
    missing = notification.truncated_alerts + left_out
    if missing:
        blocks.append(
            {"type": "context", "elements": [_plain(f"… [cut] {missing} more alerts are not shown")]}
        )
    return blocks


def _card(card: Card, shape: Shape) -> list[dict[str, Any]]:
    fields = [_plain(shorten(f"{name}\n{text}", shape.field)) for name, text in rows(card)[: shape.fields]]
    words = _words(card, shape) if shape.fields else _few_words(card, shape)
    blocks: list[dict[str, Any]] = [{"type": "section", "text": _plain(words)}]
    if fields:
        blocks.append({"type": "section", "fields": fields})
    buttons = [
        {"type": "button", "text": _plain(shorten(one_line(name) or "Open", MAX_BUTTON)), "url": url}
        for name, url in _links(card)[: shape.buttons]
    ]
    return [*blocks, {"type": "actions", "elements": buttons}] if buttons else blocks


def _words(card: Card, shape: Shape) -> str:
    head = f"{state_words(card)}: {title(card)}\n"
    return shorten(head + shorten(card.reason, shape.reason), MAX_SECTION)


def _few_words(card: Card, shape: Shape) -> str:
    """Return what is least: that it fires or is over, why, and which one it is."""
    head = shorten(f"{state_words(card)}: {title(card)}", MAX_HEAD)
    return f"{head}\n{shorten(one_line(card.reason), shape.reason)}\n{shorten(where_words(card), MAX_WHICH)}"


def _links(card: Card) -> list[tuple[str, str]]:
    links = [(link.title, link.url) for link in card.links]
    links += [("Runbook", card.runbook)] if card.runbook else []
    web = [link for link in links if link[1].startswith(("https://", "http://"))]
    return [link for link in web if len(link[1]) <= MAX_BUTTON_URL][:BUTTONS]


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text or " ", "emoji": False}


KIND = ChannelKind(
    name="slack",
    title="Slack",
    meaning="POSTs blocks to an incoming webhook of Slack. It takes no pictures: charts are linked.",
    config=Config,
    render=render,
    most_cards=MAX_CARDS,
)
