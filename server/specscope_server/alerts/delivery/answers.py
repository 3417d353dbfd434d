"""What an answer means: taken, later, never, or nothing any more (pure)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from specscope_server.alerts.channels.contract import (
    Delivered,
    Gone,
    HttpAnswer,
    Permanent,
    Retry,
    Verdict,
)

TRANSIENT = frozenset({408, 409, 423, 425, 429})
"""Answers below 500 that may be others later; 409 and 423: somebody else is at it."""
OF_CHANNEL = frozenset({401, 402, 403, 404, 405, 407})
"""Answers that refuse whatever is sent, and not this message."""
OF_MAILBOX = frozenset({530, 534, 535})
"""Such answers of a mail server: it wants another log-in."""
PERMANENT_SERVER = frozenset({501, 505})
LONGEST_WAIT_SECONDS = 6 * 3_600.0


def judge(answer: HttpAnswer, now_ms: int) -> Verdict:
    """Return what the status means. A redirect is not followed: the secret part of a URL would travel on."""
    status = answer.status
    if 200 <= status < 300:
        return Delivered()
    if 300 <= status < 400:
        reason = f"HTTP {status}: redirects are not followed; give the channel the new address"
        return Permanent(reason, is_of_channel=True)
    if status == 410:
        return Gone("HTTP 410: the receiver wants nothing any more")
    if status in TRANSIENT or (status >= 500 and status not in PERMANENT_SERVER):
        return Retry(f"HTTP {status}", retry_after_seconds(answer.headers.get("retry-after", ""), now_ms))
    return Permanent(f"HTTP {status}: {_hint(status)}", status in OF_CHANNEL)


def retry_after_seconds(text: str, now_ms: int) -> float | None:
    """Return the seconds of a Retry-After, as a number or as a date; None without a usable one.

    RFC 9110 §10.2.3. At most `LONGEST_WAIT_SECONDS`: a receiver cannot silence a channel for days.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_WAIT_SECONDS)
    try:
        at = parsedate_to_datetime(text)
        seconds = at.timestamp() - now_ms / 1_000
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)


def _hint(status: int) -> str:
    if status in (401, 403):
        return "the receiver refuses the credentials; check the channel's secrets"
    if status in (404, 405):
        return "nothing takes messages at this address; check the channel's URL"
    return "the receiver refuses the message"
