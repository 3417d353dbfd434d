"""What Slack, Discord and PagerDuty document that they refuse, as checks of a body (no more, no less).

Slack: https://docs.slack.dev/reference/block-kit/blocks and /block-elements/button-element. Discord:
https://docs.discord.com/developers/resources/message. PagerDuty:
https://developer.pagerduty.com/docs/send-alert-event.
"""

from __future__ import annotations

import json
import re
from email.parser import BytesParser
from typing import Any

from tests.support.receiver import Received

SLACK_TOTAL = 13_200
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def slack_problem(request: Received) -> str | None:
    """Return why Slack refuses the message; None when it takes it."""
    body = json.loads(request.body)
    if set(body) - {"text", "blocks"} or not isinstance(body.get("text"), str) or not body["text"]:
        return "no_text"
    blocks = body["blocks"]
    if not 1 <= len(blocks) <= 50 or len(json.dumps(blocks, ensure_ascii=False)) > SLACK_TOTAL:
        return "msg_blocks_too_long"
    return next(filter(None, map(_slack_block, blocks)), None)


def _slack_block(block: dict[str, Any]) -> str | None:
    match block["type"]:
        case "header":
            return _slack_text(block["text"], 150, {"plain_text"})
        case "section":
            if "text" not in block and not block.get("fields"):
                return "empty section"
            if len(block.get("fields", [])) > 10:
                return "too many fields"
            texts = [(block["text"], 3_000)] if "text" in block else []
            texts += [(field, 2_000) for field in block.get("fields", [])]
            return next(filter(None, (_slack_text(text, most) for text, most in texts)), None)
        case "context":
            if not 1 <= len(block["elements"]) <= 10:
                return "context elements"
            return next(filter(None, (_slack_text(text, 3_000) for text in block["elements"])), None)
        case "actions":
            if not 1 <= len(block["elements"]) <= 25:
                return "action elements"
            return next(filter(None, map(_slack_button, block["elements"])), None)
    return f"invalid_blocks: {block['type']}"


def _slack_text(text: dict[str, Any], most: int, kinds: set[str] | None = None) -> str | None:
    if text["type"] not in (kinds or {"plain_text", "mrkdwn"}):
        return f"text type {text['type']}"
    if text["type"] == "mrkdwn" and "emoji" in text:
        return "emoji is for plain_text"
    return None if 1 <= len(text["text"]) <= most else f"text of {len(text['text'])}, at most {most}"


def _slack_button(button: dict[str, Any]) -> str | None:
    if button["type"] != "button" or len(button.get("url", "")) > 3_000:
        return "button"
    if not button["url"].startswith(("http://", "https://")):
        return "button url"
    return _slack_text(button["text"], 75, {"plain_text"})


def discord_problem(request: Received) -> str | None:
    """Return why Discord answers 400; None when it takes the message."""
    body, files = _discord_parts(request)
    if len(body.get("content", "")) > 2_000:
        return "content"
    embeds = body.get("embeds", [])
    if (not body.get("content") and not embeds) or len(embeds) > 10:
        return "embeds"
    if sum(map(_discord_size, embeds)) > 6_000:
        return "embeds: more than 6000"
    used = [embed["image"]["url"].removeprefix("attachment://") for embed in embeds if "image" in embed]
    if any(name not in files for name in used):
        return "attachment"
    return next(filter(None, map(_discord_embed, embeds)), None)


def discord_body(request: Received) -> dict[str, Any]:
    """Return the JSON of a message, also of one with a file."""
    return _discord_parts(request)[0]


def _discord_parts(request: Received) -> tuple[dict[str, Any], dict[str, bytes]]:
    kind = request.headers["content-type"]
    if kind == "application/json":
        return json.loads(request.body), {}
    message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + request.body)
    files: dict[str, bytes] = {}
    body: dict[str, Any] = {}
    for part in message.get_payload():
        assert not isinstance(part, str)
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        if part.get_param("name", header="content-disposition") == "payload_json":
            body = json.loads(content)
        else:
            files[str(part.get_filename())] = content
    return body, files


def _discord_size(embed: dict[str, Any]) -> int:
    texts = [embed.get("title", ""), embed.get("description", ""), embed.get("footer", {}).get("text", "")]
    texts += [text for field in embed.get("fields", []) for text in (field["name"], field["value"])]
    return sum(map(len, texts))


def _discord_embed(embed: dict[str, Any]) -> str | None:
    if len(embed.get("title", "")) > 256 or len(embed.get("description", "")) > 4_096:
        return "title or description"
    if len(embed.get("fields", [])) > 25 or not 0 <= embed.get("color", 0) <= 0xFFFFFF:
        return "fields or color"
    if "url" in embed and (len(embed["url"]) > 2_048 or not embed["url"].startswith("http")):
        return "url"
    if "timestamp" in embed and not ISO.fullmatch(embed["timestamp"]):
        return "timestamp"
    bad = [
        field for field in embed.get("fields", [])
        if not 1 <= len(field["name"]) <= 256 or not 1 <= len(field["value"]) <= 1_024
    ]  # fmt: skip
    return "field" if bad else None


def pagerduty_problem(request: Received) -> str | None:
    """Return why PagerDuty answers 400; None when it takes the event."""
    event = json.loads(request.body)
    action = event.get("event_action")
    if action not in ("trigger", "acknowledge", "resolve") or len(request.body) > 512_000:
        return "event_action or size"
    if not re.fullmatch(r"[A-Za-z0-9]{32}", event.get("routing_key", "")):
        return "routing_key"
    if not 1 <= len(event.get("dedup_key", "")) <= 255:
        return "dedup_key"
    if action != "trigger":
        return None
    payload = event["payload"]
    if not 1 <= len(payload["summary"]) <= 1_024 or not payload["source"]:
        return "summary or source"
    if payload["severity"] not in ("critical", "error", "warning", "info"):
        return "severity"
    if not ISO.fullmatch(payload["timestamp"]):
        return "timestamp"
    if any(not link["href"].startswith("http") for link in event.get("links", [])):
        return "links"
    if any(not image["src"].startswith("https://") for image in event.get("images", [])):
        return "images"
    return None
