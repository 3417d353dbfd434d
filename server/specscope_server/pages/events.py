"""What happened in the shown range: restarts, errors of the log, losses on the way, and more."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState
from specscope_server.pages.page import Page
from specscope_server.series.service import list_events

MAX_EVENTS = 30
MEASUREMENTS = ("state_rows", "state_capture")
"""Kinds that are readings of the probe, of which there are many: the Drift page shows them."""


def events_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return the newest events of the shown server, or of all."""
    content: dict[str, Any] = {"events": [], "more_events": False}
    try:
        moment = make_time_range(state, page.from_, page.to)
        found = list_events(
            session, page.server or None, None, moment.from_ms, moment.to_ms, MAX_EVENTS, None, MEASUREMENTS
        )
    except (NotFound, InvalidInput):  # which the rest of the page says already
        return content
    return {"events": found["events"], "more_events": found["next_cursor"] is not None}
