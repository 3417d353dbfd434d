"""The far side of every kind of channel: reads what arrives as a receiver does, and answers as it is told.

It stands where the network begins: everything before it is the product.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from typing import Any, TypeAlias

import pytest

from specscope_server.alerts.channels.contract import (
    Delivered,
    HttpAnswer,
    HttpRequest,
    Mail,
    Permanent,
    Retry,
    Verdict,
)
from specscope_server.alerts.channels.words import when
from specscope_server.alerts.delivery import attempting

Seen: TypeAlias = list[tuple[str, str]]
"""(server, ``firing`` or ``resolved``) of each alert of a message, in its order."""
STATE = {"FIRING": "firing", "RESOLVED": "resolved"}
TOLD = re.compile(r"(FIRING|RESOLVED)\b.*?server=([\w-]+)", re.DOTALL)
TEMPLATE = "[{% for a in notification.alerts %}{{ [a.labels.server | default(''), a.status] | tojson }}{{ ',' if not loop.last }}{% endfor %}]"  # noqa: E501
SETTINGS: dict[str, dict[str, Any]] = {
    "webhook": {"url": "https://hook.example/x"},
    "alertmanager": {"url": "https://am.example"},
    "alertmanager_webhook": {"url": "https://hook.example/am", "max_alerts": 30},
    "slack": {"url": "https://hooks.slack.example/services/T/B/X"},
    "discord": {"url": "https://discord.example/api/webhooks/1/t"},
    "pagerduty": {"routing_key": "a" * 32},
    "email": {"host": "mail.example", "sender": "specscope@example.org", "to": ["oncall@example.org"]},
    "template": {"url": "https://hook.example/t", "body": TEMPLATE},
}


def in_texts(texts: Iterable[str]) -> Seen:
    """Return what is read in texts that each speak of one alert."""
    found = (TOLD.search(text) for text in texts)
    return [(match[2], STATE[match[1]]) for match in found if match]


def in_slack(body: Any) -> Seen:
    """Return what a reader of Slack sees: sections, joined until the next alert begins."""
    texts: list[str] = []
    for block in body["blocks"][1:]:
        words = [block["text"]["text"]] if "text" in block else []
        words += [each["text"] for each in block.get("fields", ())]
        if words and words[0].startswith(tuple(STATE)):
            texts.append("")
        texts = [*texts[:-1], texts[-1] + "\n".join(words)] if texts else []
    return in_texts(texts)


def in_discord(body: Any) -> Seen:
    """Return what a reader of Discord sees."""
    embeds = ([embed["title"], *(each["value"] for each in embed["fields"])] for embed in body["embeds"])
    return in_texts("\n".join(words).replace("\\", "") for words in embeds)


def in_alertmanager(body: Any, now_ms: int) -> Seen:
    """Return what an Alertmanager makes of it: what ends later than now fires."""
    return [
        (each["labels"].get("server", ""), "firing" if each["endsAt"] > when(now_ms) else "resolved")
        for each in body
    ]


@dataclass
class FarSide:
    """Receives for every kind."""

    now_ms: Callable[[], int]
    answers: Callable[[Seen], int] = lambda _: 200
    messages: list[Seen] = field(default_factory=list)
    servers: dict[str, str] = field(default_factory=dict)
    """PagerDuty names a server only when it fires: key → server."""

    def send(self, request: HttpRequest, *_: Any, **__: Any) -> HttpAnswer:
        """Take a request."""
        seen = self._read(request)
        status = self.answers(seen)
        if status < 300:
            self.messages.append(seen)
        return HttpAnswer(status)

    def send_mail(self, mail: Mail, *_: Any, **__: Any) -> tuple[Verdict, int]:
        """Take a mail."""
        body = message_from_bytes(mail.message, policy=policy.default).get_body(("plain",))
        assert body is not None
        cards = body.get_content().replace("\r", "").split("\n\n")[1:]
        seen = in_texts(cards)
        status = self.answers(seen)
        if status >= 300:
            return (Retry("SMTP 451"), 451) if status >= 500 else (Permanent("SMTP 554"), 554)
        self.messages.append(seen)
        return Delivered(), 250

    def all(self) -> Seen:
        """Return everything that arrived."""
        return [each for message in self.messages for each in message]

    def _read(self, request: HttpRequest) -> Seen:
        body = json.loads(request.body)
        if isinstance(body, list) and body and isinstance(body[0], dict):
            return in_alertmanager(body, self.now_ms())
        if isinstance(body, list):
            return [(server, status) for server, status in body]
        if "event_action" in body:
            return self._event(body)
        if "blocks" in body:
            return in_slack(body)
        if "embeds" in body:
            return in_discord(body)
        alerts = body.get("data", body)["alerts"]
        return [(each["labels"].get("server", ""), each["status"]) for each in alerts]

    def _event(self, event: Any) -> Seen:
        key = event["dedup_key"]
        if event["event_action"] == "trigger":
            self.servers[key] = event["payload"]["source"]
        action = {"trigger": "firing", "resolve": "resolved"}[event["event_action"]]
        return [(self.servers[key], action)]


def stand_in(monkeypatch: pytest.MonkeyPatch, far_side: FarSide) -> None:
    """Let this process send to ``far_side`` instead of into the network."""
    monkeypatch.setattr(attempting, "send", far_side.send)
    monkeypatch.setattr(attempting, "send_mail", far_side.send_mail)
