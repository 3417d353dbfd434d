"""One attempt: write the messages, send them in order, say what came of it. No database here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import structlog

from specscope_server.alerts.channels.contract import (
    Context,
    Delivered,
    Gone,
    Mail,
    Message,
    Permanent,
    Retry,
    Verdict,
)
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.opening import Opened
from specscope_server.alerts.delivery import answers
from specscope_server.alerts.delivery.http import Lost, Unsendable, send
from specscope_server.alerts.delivery.mail import send_mail
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.kit.errors import InvalidInput

LONGEST_ATTEMPT_SECONDS = 240.0
_UNWRITTEN = "the message cannot be written ({}); see the server's log"
log = structlog.get_logger(__name__)

Outcome = Literal["delivered", "retry", "unknown", "gone", "permanent"]
"""``unknown``: the receiver may have taken it, or a part of it, but did not say so."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """What came of an attempt."""

    outcome: Outcome
    reason: str = ""
    status_code: int | None = None
    latency_ms: int = 0
    after_seconds: float | None = None
    body_sha256: str | None = None
    is_of_channel: bool = False
    """Refused for good, and so would any other be, as the channel is set up."""


def attempt_seconds(config_seconds: float, alerts: int) -> float:
    """Return how long an attempt may take in all: some kinds send a message for each alert."""
    return min(config_seconds * max(alerts, 1), LONGEST_ATTEMPT_SECONDS)


def attempt(
    channel: Opened, notification: Notification, webhook_id: str, number: int, now_ms: int,
    options: DeliveryOptions,
) -> Attempted:  # fmt: skip
    """Send the notification. Never raises for what a template, a name or a receiver does."""
    began = time.monotonic()
    try:
        picture = _picture(channel, notification, options)
        context = Context(channel.name, webhook_id, now_ms, number, picture)
        messages = channel.kind.render(channel.config, notification, context)
    except InvalidInput as error:
        return Attempted("permanent", error.detail, latency_ms=_since(began))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # Of the same notification the same comes of it at each attempt: another one would not help.
        log.error("message not written", channel=channel.name, exc_info=error)
        return Attempted("permanent", _UNWRITTEN.format(type(error).__name__), latency_ms=_since(began))
    digest = sha256()
    for message in messages:
        digest.update(message.message if isinstance(message, Mail) else message.body)
    sent = _send_all(channel, messages, len(notification.alerts), now_ms, options)
    verdict, code, was_taken = sent
    after = verdict.after_seconds if isinstance(verdict, Retry) else None
    outcome = _outcome(verdict, was_taken)
    reason = getattr(verdict, "reason", "")
    if outcome == "delivered" and reason:
        reason = f"taken but for a part: {reason}"
    is_of_channel = isinstance(verdict, Permanent) and verdict.is_of_channel
    return Attempted(outcome, reason, code, _since(began), after, digest.hexdigest(), is_of_channel)


def _send_all(
    channel: Opened, messages: Sequence[Message], alerts: int, now_ms: int, options: DeliveryOptions
) -> tuple[Verdict, int | None, bool]:
    """Return (verdict, code, whether something may have been taken although the verdict is no delivery)."""
    until = time.monotonic() + attempt_seconds(channel.config.timeout_seconds, alerts)
    verdict: Verdict = Delivered()
    code: int | None = None
    for place, message in enumerate(messages):
        seconds = min(channel.config.timeout_seconds, until - time.monotonic())
        try:
            verdict, code = _send_one(channel, message, max(seconds, 0.001), now_ms, options)
        except Lost as lost:
            return Retry(lost.reason), None, lost.was_sent or place > 0
        except Unsendable as error:
            return Permanent(error.reason), None, place > 0
        if not isinstance(verdict, Delivered):
            return verdict, code, place > 0
    return verdict, code, False


def _send_one(
    channel: Opened, message: Message, seconds: float, now_ms: int, options: DeliveryOptions
) -> tuple[Verdict, int | None]:
    policy = options.policy(channel)
    if isinstance(message, Mail):
        return send_mail(message, policy, seconds, resolver=options.resolver, tls=options.tls)
    answer = send(message, policy, seconds, resolver=options.resolver, tls=options.tls)
    return (channel.kind.judge or answers.judge)(answer, now_ms), answer.status


def _outcome(verdict: Verdict, was_taken: bool) -> Outcome:
    """Return what came of it. A kind whose messages tell of several alerts each by itself would be told wrong
    of a part that is refused: such a kind says ``most_cards=1``.
    """
    match verdict:
        case Delivered():
            return "delivered"
        case Gone():
            return "gone"
        case Permanent():
            return "delivered" if was_taken else "permanent"
        case Retry():
            return "unknown" if was_taken else "retry"


def _picture(channel: Opened, notification: Notification, options: DeliveryOptions) -> bytes | None:
    """Return the picture of the first part; one that cannot be made is left out: it holds no alert up."""
    figure = next((card.figure for card in notification.alerts if card.figure is not None), None)
    if figure is None or not channel.kind.carries_picture or notification.part > 1:
        return None
    try:
        return options.pictures(figure)
    except Exception as error:
        log.warning("no picture for a notification", channel=channel.name, reason=type(error).__name__)
        return None


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1_000)
