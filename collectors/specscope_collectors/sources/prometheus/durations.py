"""Lengths of time and moments as users write them: ``30d``, ``90s``, ``2026-11-01T00:00Z``."""

from __future__ import annotations

import re
from datetime import UTC, datetime

EARLIEST_MS = 1_420_070_400_000
"""2015: no engine that we read is older."""
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d{1,9})(ms|s|m|h|d|w)")
_WHOLE = re.compile(r"(?:\d{1,9}(?:ms|s|m|h|d|w))+")


def duration_ms(text: str) -> int:
    """Return milliseconds of ``1d12h``; raise ValueError with reason and remedy."""
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"{text[:40]!r} is no length of time; write it like 30d, 12h, 5m or 90s")
    return sum(int(count) * _UNITS_MS[unit] for count, unit in _PART.findall(text))


def moment_ms(text: str, now_ms: int) -> int:
    """Return epoch milliseconds of an ISO 8601 time (UTC without a zone), or of so long ago (``30d``)."""
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return max(now_ms - duration_ms(text), EARLIEST_MS)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text[:40]!r} is no time; write how long ago (30d, 12h) or a time like 2026-11-01T00:00Z"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(int(moment.timestamp() * 1000), EARLIEST_MS)


def promql_duration(length_ms: int) -> str:
    """Return a length of time as PromQL writes it."""
    return f"{length_ms}ms" if length_ms % 1_000 else f"{length_ms // 1_000}s"
