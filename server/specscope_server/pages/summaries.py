"""The acceptance summary of one server, as the pages ask for it."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.acceptance import service
from specscope_server.acceptance.schemas import AcceptanceSummary
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState


def of_server(
    session: Session, state: AppState, server: str, launch: str | None, moment: TimeRange
) -> AcceptanceSummary:
    """Return the summary; raise `NotFound` or `InvalidInput` with a remedy."""
    return service.summary(session, state, server, launch, moment)
