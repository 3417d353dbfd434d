"""Numbers, ages and names as a reader sees them. Missing is a dash, never a zero."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

MISSING = "–"
FLAG = re.compile(r"(?<!\S)--[a-z][a-z0-9-]+")
_DIRECTION_MARKS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F])


def number_text(value: float | None, unit: str = "") -> str:
    """Return e.g. "2.00", "33.3", "1,234"; a ratio (unit "1") in percent, without the sign."""
    if value is None:
        return MISSING
    if unit == "1":
        return f"{100 * value:.1f}"
    if float(value).is_integer() and unit in ("drafts", "requests", "tokens", "cycles", "values", "series"):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def unit_text(unit: str) -> str:
    """Return the unit that stands beside `number_text`."""
    return {"1": "%", "tokens/cycle": "tokens/cycle", "cycles/s": "/s"}.get(unit, unit)


def span_text(seconds: float) -> str:
    """Return a length of time with one unit: "4 s", "3 min", "2 h", "5 d"."""
    for limit, size, unit in ((90, 1, "s"), (5_400, 60, "min"), (129_600, 3_600, "h")):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def age_text(seconds: float | None) -> str:
    """Return "12 s ago"; a dash when the age is not known."""
    return MISSING if seconds is None else f"{span_text(seconds)} ago"


def count_text(value: float | None) -> str:
    """Return a count with thousands separators; a dash when it was not counted."""
    return MISSING if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def moment_text(iso: str | None) -> str:
    """Return "2026-03-01 12:00:05" (UTC) for an ISO 8601 time."""
    if not iso:
        return MISSING
    moment = datetime.fromisoformat(iso)
    return f"{(moment.astimezone(UTC) if moment.tzinfo else moment):%Y-%m-%d %H:%M:%S}"


def bytes_text(value: int | None) -> str:
    """Return "90 kB"; a dash when it is not known."""
    if value is None:
        return MISSING
    for limit, size, unit in ((1_000, 1, "B"), (1_000_000, 1_000, "kB"), (1_000_000_000, 1_000_000, "MB")):
        if value < limit:
            return f"{value / size:.0f} {unit}"
    return f"{value / 1e9:.1f} GB"


def shorten(text: str, limit: int = 80) -> str:
    """Return untrusted text without direction marks and control characters, cut to ``limit``."""
    plain = "".join(
        character if character.isprintable() else " " for character in text.translate(_DIRECTION_MARKS)
    )
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def flags(text: str) -> Markup:
    """Return untrusted text with each flag (``--enable-metrics``) as code, which breaks at no hyphen."""
    parts, end = [], 0
    for found in FLAG.finditer(text):
        parts += [escape(text[end : found.start()]), Markup('<code class="flag">{}</code>').format(found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])
