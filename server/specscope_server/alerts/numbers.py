"""Numbers with their units, written in one way in all that alerts say (pure)."""

from __future__ import annotations

import math

from specscope_server.kit.timeparse import to_iso

UNKNOWN = "unknown"
SHARES = ("1", "ratio")
"""Units of shares: said in per cent."""
SHORT = {"seconds": "s", "seconds/s": "s/s", "flag": "", "level": "", **dict.fromkeys(SHARES, "%")}
LARGER = {"bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0.0, "bytes"))}
SINGULAR = {"passes": "pass", "switches": "switch", "series": "series"}
"""Of units whose last letter is not all that goes."""
LARGEST = 1e15
"""From which on digits are not written out."""


def number(value: float | None, unit: str = "") -> str:
    """Return four significant digits, or whole thousands, with the unit: ``1.091 ms``, ``37.12 %``."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    value, unit = _scaled(value, unit)
    digits = _digits(value)
    if digits == "1":
        unit = _of_one(unit)
    return f"{digits}{unit}" if unit == "×" else f"{digits} {unit}".rstrip()


def moment(time_ms: int) -> str:
    """Return a time for people, e.g. ``2026-03-01 02:15 UTC``."""
    return f"{to_iso(time_ms)[:16].replace('T', ' ')} UTC"


def bare_unit(unit: str) -> str:
    """Return the unit of a number that stands beside one with its unit: only a share says it again."""
    return unit if unit in SHARES else ""


def interval(lower: float | None, upper: float | None, unit: str) -> str:
    """Return `` (95 % interval 1.18 to 1.24)``, or nothing where there is none."""
    if lower is None or upper is None or not (math.isfinite(lower) and math.isfinite(upper)):
        return ""
    bare = bare_unit(unit)
    return f" (95 % interval {number(lower, bare)} to {number(upper, bare)})"


def _scaled(value: float, unit: str) -> tuple[float, str]:
    if unit in SHARES:
        return 100 * value, "%"
    if unit in LARGER:
        size, larger = next((size, name) for size, name in LARGER[unit] if abs(value) >= size)
        return value / (size or 1.0), larger
    return value, SHORT.get(unit, unit)


def _digits(value: float) -> str:
    text = f"{value:,.0f}" if 1_000 <= abs(value) < LARGEST else f"{value:.4g}"
    return "0" if text == "-0" else text


def _of_one(unit: str) -> str:
    """Return ``event`` for ``events``; units of more than one word (``tokens/cycle``) and short ones stay."""
    if not unit.isalpha() or len(unit) <= 2 or unit in SHORT.values() or not unit.endswith("s"):
        return unit
    return SINGULAR.get(unit, unit.removesuffix("s"))
