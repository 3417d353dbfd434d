"""Slack: blocks for an incoming webhook, within what Slack documents.

https://docs.slack.dev/reference/block-kit/blocks: at most 50 blocks; a header 150 characters, a section's
text 3,000 and each of its 10 fields 2,000, a button's text 75. Untrusted text is plain or escaped: it
can make neither links nor mentions.
"""

from __future__ import annotations

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
    rows,
    shorten,
    state_words,
    title,
    within,
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
SHOWN_FIELD = 400


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
    shown, left_out = within(notification.alerts, lambda some, left: _fits(_blocks(notification, some, left)))
    blocks = _blocks(notification, shown, left_out)
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


def _blocks(notification: Notification, cards: list[Card], left_out: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(shorten(headline(notification), MAX_HEADER))}
    ]
    for card in cards:
        blocks += _card(card)
    missing = notification.truncated_alerts + left_out
    if missing:
        blocks.append(
            {"type": "context", "elements": [_plain(f"… [cut] {missing} more alerts are not shown")]}
        )
    return blocks


def _card(card: Card) -> list[dict[str, Any]]:
    reason = _plain(shorten(f"{state_words(card)}: {title(card)}\n{card.reason}", MAX_SECTION))
    fields = [_plain(shorten(f"{name}\n{text}", SHOWN_FIELD)) for name, text in rows(card)[:FIELDS]]
    blocks: list[dict[str, Any]] = [{"type": "section", "text": reason}]
    if fields:
        blocks.append({"type": "section", "fields": fields})
    buttons = [
        {"type": "button", "text": _plain(shorten(one_line(name) or "Open", MAX_BUTTON)), "url": url}
        for name, url in _links(card)
    ]
    return [*blocks, {"type": "actions", "elements": buttons}] if buttons else blocks


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
)
