"""Alerts over REST: now, history, one alert, taking it on, who changed what; and what the folders offer.

Rules, silences, channels and deliveries have routers of their own, found by convention.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

import specscope_server.alerts as package
from specscope_server.alerts import auditing, detail, examples, listing
from specscope_server.alerts.schemas import (
    Acknowledgement,
    AlertDetail,
    AlertList,
    AuditList,
    History,
    TransitionItem,
)
from specscope_server.alerts.states.machine import State as Standing
from specscope_server.kit.web.actor import actor_of
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice, OptionalServer, Span
from specscope_server.kit.web.state import Db, State

router = APIRouter(tags=["alerts"])

AlertId = Annotated[
    str, Path(max_length=80, description="Id of a fire, or the fingerprint of its series, as listed")
]
OfState = Annotated[Standing | None, Query(alias="state", description="Only alerts in this state")]
ToState = Annotated[Standing | None, Query(alias="state", description="Only changes to this state")]
OfRule = Annotated[str | None, Query(alias="rule", max_length=80, description="Only alerts of this rule")]
Action = Annotated[
    str | None,
    Query(max_length=60, description="Beginning of what was done, e.g. `silence` or `rule.update`"),
]
Target = Annotated[str | None, Query(max_length=200, description="What it was done to, exactly")]


def _include_folders() -> None:
    """Take the routers of the folders first: `/alerts/{alert_id}` below would take their paths."""
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        if not module.ispkg:
            continue
        folder = importlib.import_module(f"{package.__name__}.{module.name}")
        if any(inner.name == "endpoints" for inner in pkgutil.iter_modules(folder.__path__)):
            router.include_router(importlib.import_module(f"{folder.__name__}.endpoints").router)


_include_folders()


@router.get(
    "/alerts", summary="Show alerts now", response_model=AlertList, responses=answers(examples.LIST, 422)
)
def list_alerts(
    db: Db, state: State, server: OptionalServer = None, rule: OfRule = None, of_state: OfState = None
) -> AlertList:
    """Alerts that fire, recover or are pending, and series of which nothing is known; the worst first. Those
    that are over are shown with `state=resolved`.
    """
    health = "ok" if state.alerts_health is None else state.alerts_health()
    return listing.list_alerts(db.connection(), of_state, server, rule, health)


@router.get(
    "/alerts/history", summary="Show the history of alerts", response_model=History,
    responses=answers(examples.HISTORY, 422, csv=examples.HISTORY_CSV),
)  # fmt: skip
def alert_history(
    request: Request, db: Db, asked: Span, server: OptionalServer = None, rule: OfRule = None,
    to_state: ToState = None, limit: Limit = 200, cursor: Cursor = None, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Every change of state in the range, newest first; `notified` says whether a channel was told."""
    page = listing.history(
        db.connection(), asked.from_ms, asked.to_ms, rule, server, to_state, limit, cursor
    )  # fmt: skip
    document = page.model_dump(mode="json")
    return respond(request, chosen, document, tuple(TransitionItem.model_fields), document["transitions"])


@router.get(
    "/alerts/audit", summary="Show who changed alerts", response_model=AuditList,
    responses=answers(examples.AUDIT, 422),
)  # fmt: skip
def list_audit(
    db: Db, action: Action = None, target: Target = None, limit: Limit = 100, cursor: Cursor = None
) -> AuditList:
    """Every change of rules, silences and channels, every acknowledgement and replay, newest first."""
    return auditing.list_audit(db.connection(), action, target, limit, cursor)


@router.get(
    "/alerts/{alert_id}", summary="Show an alert", response_model=AlertDetail,
    responses=answers(examples.DETAIL, 404, 422),
)  # fmt: skip
def show_alert(db: Db, alert_id: AlertId) -> AlertDetail:
    """One alert: its card as channels are told it, and all that happened to it, deliveries included."""
    return detail.get_detail(db.connection(), alert_id)


@router.post(
    "/alerts/{alert_id}/ack", summary="Acknowledge an alert", response_model=AlertDetail,
    responses=answers(examples.DETAIL, 403, 404, 409, 422),
)  # fmt: skip
def acknowledge_alert(
    request: Request, state: State, alert_id: AlertId, body: Acknowledgement | None = None
) -> AlertDetail:
    """Says that somebody looks after it: it is not repeated, and its end is told as ever. With `for`
    only for a while, after which it is told that it still fires. The next fire needs one of its own.
    """
    given = body or Acknowledgement.model_validate({})
    return detail.acknowledge(state.engine, alert_id, given, actor_of(request), state.clock())


@router.delete(
    "/alerts/{alert_id}/ack", summary="Give an alert back", response_model=AlertDetail,
    responses=answers(examples.DETAIL, 403, 404, 409, 422),
)  # fmt: skip
def give_alert_back(request: Request, state: State, alert_id: AlertId) -> AlertDetail:
    """Takes the acknowledgement back: it is repeated again while it fires."""
    return detail.give_back(state.engine, alert_id, actor_of(request), state.clock())
