"""What an answer is when it is no Prometheus exposition, in words that tell a user what went wrong."""

from __future__ import annotations

import re

_JSON = re.compile(rb'\{\s*(?:"[^"]*"\s*:|\})|\[\s*[\[\]{"\d]')
_GZIP = b"\x1f\x8b"
_SHOWN_CHARACTERS = 60


class NotAnExposition(ValueError):
    """The body is something else than metrics; ``reason`` says what it looks like."""

    def __init__(self, reason: str, *, is_empty: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_empty = is_empty
        """Nothing at all: an engine that has measured nothing yet may answer so (0.4.6 before a request)."""


def refuse_other_formats(body: bytes) -> None:
    """Raise `NotAnExposition` for an empty body and for what its first bytes give away: HTML, JSON, gzip."""
    head = body[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head and not body.strip():
        raise NotAnExposition("the body is empty", is_empty=True)
    if head.startswith(_GZIP):
        raise NotAnExposition("the body is gzip that was not unpacked")
    if head.startswith(b"<"):
        raise NotAnExposition(f"the body is HTML or XML, it begins {shown(head)}")
    if _JSON.match(head):
        raise NotAnExposition(f"the body is JSON, it begins {shown(head)}")


def unknown_format(body: bytes) -> NotAnExposition:
    """Return the error for a body in which no line is a sample or a metric's comment."""
    if b"\0" in body[:4096]:
        return NotAnExposition("the body is binary")
    return NotAnExposition(f"the body holds no metric, it begins {shown(body.lstrip())}")


def shown(head: bytes) -> str:
    """Return the beginning of an untrusted body, quoted and short."""
    line = head[: 4 * _SHOWN_CHARACTERS].partition(b"\n")[0].strip().decode(errors="replace")
    return ascii(line[:_SHOWN_CHARACTERS]) + ("…" if len(line) > _SHOWN_CHARACTERS else "")
