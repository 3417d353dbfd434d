"""Versions of engines and tools, as far as rules need to tell them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int, int]
OLDEST, NEWEST = (0, 0, 0), (10**6, 0, 0)

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(.*)", re.ASCII)
_UNFINISHED = re.compile(r"[._-]?(a|b|rc|dev|alpha|beta)", re.ASCII)
_LATER = "or later"
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Span:
    """Versions that it may be, both ends included."""

    low: Version
    high: Version

    @property
    def is_known(self) -> bool:
        """Whether anything is known."""
        return (self.low, self.high) != (OLDEST, NEWEST)


ANY = Span(OLDEST, NEWEST)


def span_of(text: str | None) -> Span:
    """Return which versions a text means; `ANY` when it says nothing.

    ``0.5.8`` is that one (``.post1`` counts as it); ``0.5.15rc1`` lies between the one before and it;
    ``0.5.3–0.5.14`` is a range, and ``0.5.8 or later`` is open at its end.
    """
    text = (text or "")[:MAX_TEXT].strip()
    if "–" in text:
        first, last = text.split("–", 1)
        low, high = span_of(first), span_of(last)
        return Span(low.low, high.high) if low.is_known and high.is_known and low.low <= high.high else ANY
    found = _VERSION.match(text)
    if found is None:
        return ANY
    major, minor, patch = int(found[1]), int(found[2]), int(found[3] or 0)
    version, rest = (major, minor, patch), found[4]
    if _LATER in rest:
        return Span(version, NEWEST)
    if _UNFINISHED.match(rest):
        return Span((major, minor, patch - 1), version)
    return Span(version, version)


def text_of(version: Version) -> str:
    """Return a version as it is written."""
    return ".".join(map(str, version))
