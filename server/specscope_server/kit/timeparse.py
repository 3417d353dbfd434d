"""Read the times and steps that people write: ISO 8601, epoch milliseconds, ``now``, ``now-6h``; ``5m``."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.timerange import Window

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
MAX_MS = 32_503_679_999_999
"""2999-12-31T23:59:59.999Z: any bucket that begins before it ends in a four-digit year."""
MAX_BUCKETS = 20_000
NICE_STEPS_MS = tuple(
    1_000 * seconds
    for seconds in (
        *(1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1_200, 1_800),
        *(3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800),
    )
)

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d|w)", re.ASCII)
_RELATIVE = re.compile(r"(now)?(?:([+-])(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d|w))?", re.ASCII)
_EPOCH_MS = re.compile(r"\d{12,15}", re.ASCII)


def to_iso(time_ms: int) -> str:
    """Return UTC ISO 8601 with milliseconds and Z, e.g. ``2026-03-01T12:00:00.000Z``."""
    moment = datetime.fromtimestamp(time_ms // 1_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1_000:03d}Z".rjust(24, "0")


def iso_or_none(time_ms: int | None) -> str | None:
    """Return `to_iso`, or None for None."""
    return None if time_ms is None else to_iso(time_ms)


def parse_instant(text: str, now_ms: int, name: str = "from") -> int:
    """Return epoch milliseconds; raise `InvalidInput` naming parameter, input and what is accepted."""
    given = text.strip()
    value = _relative(given, now_ms)
    if value is None and _EPOCH_MS.fullmatch(given):
        value = int(given)
    if value is None:
        value = _iso(given)
    if value is None:
        raise InvalidInput(
            f"{name}={_shown(text)} is not a time; write ISO 8601 (2026-03-01T12:00:00Z), epoch "
            f"milliseconds, "
            "now, now-6h or -30m (units ms, s, m, h, d, w)"
        )
    if not 0 <= value <= MAX_MS:
        raise InvalidInput(f"{name}={_shown(text)} lies outside the years 1970 to 2999; choose a time inside")
    return value


def parse_duration_ms(text: str, name: str = "step") -> int:
    """Return the milliseconds of ``30s``, ``5m``, ``1.5h`` …; at least 1."""
    match = _DURATION.fullmatch(text.strip())
    length = round(float(match[1]) * UNITS_MS[match[2]]) if match else 0
    if not 1 <= length <= MAX_MS:
        raise InvalidInput(
            f"{name}={_shown(text)} is not a length of time; write 30s, 5m, 1h or 1d (positive)"
        )
    return length


def nice_step_ms(span_ms: int, points: int, at_least_ms: int = 1_000) -> int:
    """Return the smallest customary step that cuts ``span_ms`` into at most ``points`` buckets."""
    wanted = max(-(-span_ms // max(points, 1)), at_least_ms)
    for step in NICE_STEPS_MS:
        if step >= wanted:
            return step
    week = NICE_STEPS_MS[-1]
    return -(-wanted // week) * week


def window_of(from_ms: int, to_ms: int, step_ms: int) -> Window:
    """Return the window, ``from_ms`` moved back to a multiple of ``step_ms``; refuse empty and huge ones."""
    if from_ms >= to_ms:
        raise InvalidInput(
            f"from ({to_iso(from_ms)}) is not before to ({to_iso(to_ms)}); swap them or widen the range"
        )
    window = Window(from_ms - from_ms % step_ms, to_ms, step_ms)
    if window.buckets > MAX_BUCKETS:
        raise InvalidInput(
            f"step={step_ms} ms cuts this range into {window.buckets} buckets, over the limit of "
            f"{MAX_BUCKETS}; "
            "choose a longer step or a shorter range"
        )
    return window


def _relative(text: str, now_ms: int) -> int | None:
    match = _RELATIVE.fullmatch(text)
    if not text or match is None:
        return None
    if match[2] is None:
        return now_ms
    shift = round(float(match[3]) * UNITS_MS[match[4]])
    return now_ms + shift if match[2] == "+" else now_ms - shift


def _iso(text: str) -> int | None:
    if not re.match(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return None
    # In a query string an unescaped "+02:00" arrives as " 02:00".
    repaired = re.sub(r" (\d\d:?\d\d)$", r"+\1", text) if "T" in text else text
    try:
        moment = datetime.fromisoformat(repaired)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000 + delta.microseconds // 1_000


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
