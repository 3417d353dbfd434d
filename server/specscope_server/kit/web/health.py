"""GET /healthz (the process answers) and /readyz (store, migrations, collectors, alerts)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from specscope_server.kit.web.formats import dump_json
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.state import AppState, get_state

log = structlog.get_logger(__name__)
DEGRADED = "degraded: "
"""How the outcome of a check begins that a restart does not mend: the server is ready all the same."""
_READY = {"ready": True, "checks": {"store": "ok", "migrated": "ok", "collectors": "ok", "alerts": "ok"}}


def health_router(is_current: Callable[[AppState], bool]) -> APIRouter:
    """Return the two routes; ``is_current`` tells whether the store's tables are up to date."""
    router = APIRouter(tags=["health"])

    alive = answers({"alive": True}, needs_token=False)
    ready = answers(_READY, needs_token=False)

    @router.get("/healthz", summary="Is the process alive", responses=alive)
    def healthz() -> dict[str, bool]:
        """Answers as long as the process can answer at all; needs no token."""
        return {"alive": True}

    @router.get("/readyz", summary="Is the server ready", responses=ready)
    def readyz(request: Request) -> Response:
        """200 when the store answers and is migrated, the collectors run and alerts are evaluated and
        delivered, else 503 with what is wrong. A check that says `degraded: …` (a channel of alerts fails)
        leaves it 200. No token.
        """
        checks = readiness(get_state(request), is_current)
        is_ready = all(outcome == "ok" or outcome.startswith(DEGRADED) for outcome in checks.values())
        body: dict[str, Any] = {"ready": is_ready, "checks": checks}
        return Response(
            dump_json(body), 200 if is_ready else 503, {"Cache-Control": "no-store"}, "application/json"
        )

    return router


def readiness(state: AppState, is_current: Callable[[AppState], bool]) -> dict[str, str]:
    """Return check → ``ok`` or what is wrong. Nothing of the store's address or error text is shown."""
    checks = {"store": "ok", "migrated": "ok", "collectors": "ok", "alerts": "ok"}
    try:
        with state.engine.connect() as connection:
            connection.execute(text("SELECT 1"))
        if not is_current(state):
            checks["migrated"] = "the tables are not at this version's revision; run specscope db upgrade"
            checks["alerts"] = "unknown: the tables are not at this version's revision"
        elif state.alerts_health is not None:
            checks["alerts"] = state.alerts_health()
    except SQLAlchemyError as error:
        log.warning("store_unreachable", reason=type(error).__name__)
        checks["store"] = "the database does not answer"
        checks["migrated"] = checks["alerts"] = "unknown: the database does not answer"
    if state.collectors_alive is not None and not state.collectors_alive():
        checks["collectors"] = "the collectors of this process have stopped; restart it and see its log"
    return checks
