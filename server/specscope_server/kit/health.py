"""The overall state of a watched server, from the states of its sources (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Overall(StrEnum):
    """State of a server as a whole."""

    OK = "ok"
    PARTIAL = "partial"
    """Read, but something is missing or one source fails."""
    STALE = "stale"
    """Was read before, but nothing lately: the collector or the network stopped."""
    FAILING = "failing"
    """The newest attempts of all sources fail."""
    GONE = "gone"
    """No longer listed where it was found: nobody asks it any more."""
    UNKNOWN = "unknown"
    """Never attempted."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """What decides: the state, and when it was last attempted."""

    state: str
    time_ms: int


def overall_state(sources: Sequence[SourceView], now_ms: int, stale_after_ms: int) -> Overall:
    """Return the state of a server whose sources are in these states.

    Sources have their own pace, so only the newest attempt of any of them decides about staleness. A source
    that the engine's version does not offer says nothing about the server.
    """
    sources = [source for source in sources if source.state != "not_offered"]
    if not sources:
        return Overall.UNKNOWN
    newest = max(sources, key=lambda source: (source.time_ms, source.state == "gone"))
    if newest.state == "gone":
        return Overall.GONE
    if now_ms - newest.time_ms > stale_after_ms:
        return Overall.STALE
    readable = [source for source in sources if source.state in ("ok", "partial")]
    if not readable:
        return Overall.FAILING
    all_ok = all(source.state == "ok" for source in sources)
    return Overall.OK if all_ok else Overall.PARTIAL
