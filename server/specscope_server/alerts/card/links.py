"""Links of a card: pages of the dashboard with absolute times, so that they show the same later (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from specscope_server.alerts.channels.notification import CardLink
from specscope_server.kit.timeparse import to_iso

BEFORE_MS = 3_600_000
"""Time shown before the window that fired."""
AFTER_MS = 600_000
TITLES = {
    "/": "Overview",
    "/acceptance": "Acceptance",
    "/time": "Time",
    "/drift": "Drift",
    "/sources": "Sources",
    "/requests": "Requests",
    "/canary": "Canary",
}


def links_of(
    public_url: str, page: str, alert_id: str, labels: Mapping[str, str], from_ms: int, to_ms: int
) -> list[CardLink]:
    """Return the page that shows it first, then the alert's own; none without a public URL."""
    if not public_url:
        return []
    path = page if page.startswith("/") else "/"
    query = {
        "server": labels.get("server", ""),
        "from": _time(from_ms - BEFORE_MS),
        "to": _time(to_ms + AFTER_MS),
    }
    asked = urlencode({name: value for name, value in query.items() if value})
    mark = "&" if "?" in path else "?"
    title = TITLES.get(path.partition("?")[0], "What it speaks of")
    return [
        CardLink(title, f"{public_url}{quote(path, safe='/?&=%')}{mark}{asked}"),
        CardLink("This alert", f"{public_url}/alerts/{quote(alert_id, safe='')}"),
    ]


def _time(time_ms: int) -> str:
    return to_iso(max(time_ms, 0))
