"""Which panel shows what an alert is about, for the picture of a channel (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from specscope_server.alerts.channels.notification import CardFigure
from specscope_server.alerts.rules.schema import Category

BEFORE_MS = 3_600_000
"""Time shown before the window that fired."""
PANELS = {
    Category.SOURCES: "source-up",
    Category.ACCEPTANCE: "accept-length",
    Category.TIMING: "time-per-cycle",
    Category.DRIFT: "drift-trend",
    Category.RANKS: "accept-length",
    Category.PROBE: "source-up",
    Category.CONFIGURATION: "accept-length",
}
BY_POSITION = "positions-survival-over-time"


def figure_of(category: Category, labels: Mapping[str, str], from_ms: int, to_ms: int) -> CardFigure | None:
    """Return the panel; None where no panel shows it, or it is about no one server."""
    name = BY_POSITION if "position" in labels else PANELS.get(category)
    server = labels.get("server", "")
    if name is None or not server or to_ms <= from_ms:
        return None
    return CardFigure(name, server, max(from_ms - BEFORE_MS, 0), to_ms)
