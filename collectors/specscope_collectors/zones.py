"""Time zones by the names that people write."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UNKNOWN_ZONE = "there is no such zone here; write it like Europe/Berlin or UTC"


def zone_named(name: str) -> tzinfo:
    """Return the time zone of this name. Raises ValueError for one that is not there, or is no name."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(UNKNOWN_ZONE) from None
