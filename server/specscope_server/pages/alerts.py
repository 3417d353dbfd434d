"""What the pages about alerts show: what fires, one alert, the rules, the channels."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.alerts import detail, listing
from specscope_server.alerts.channels import listing as channels
from specscope_server.alerts.figures import TIMELINE
from specscope_server.alerts.health import failing_channels
from specscope_server.alerts.rules import service as rules
from specscope_server.alerts.silences import service as silences
from specscope_server.alerts.states.machine import State as Standing
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState
from specscope_server.pages import alert_views
from specscope_server.pages.page import Page
from specscope_server.pages.serving import Content

ALERTS_RANGE = "24h"
MAX_HISTORY = 50
MAX_DELIVERIES = 50


def now_of(session: Session, state: AppState, page: Page) -> Content:
    """Return what fires, its history in the shown range, and silences."""
    connection, server = session.connection(), page.server or None
    health = _health(state)
    listed = listing.list_alerts(connection, None, server, None, health)
    rows = [alert_views.alert_row(item, state.clock()) for item in listed.alerts]
    on = sum(item.enabled for item in rules.list_rules(session).rules)
    content: Content = {
        "problem": None, "rows": rows, "views": alert_views, "charts": [TIMELINE] if page.server else [],
        "verdict": alert_views.headline(rows, health, on), "history": [], "more_history": False,
        "failing_channels": failing_channels(connection),
        "silences": silences.list_silences(connection, None, state.clock()).silences,
        "channels_on": sum(item.enabled for item in channels.list_channels(connection).channels),
    }  # fmt: skip
    try:
        span = make_time_range(state, page.from_, page.to)
    except InvalidInput as error:
        return content | {"problem": error}
    past = listing.history(connection, span.from_ms, span.to_ms, None, server, None, MAX_HISTORY, None)
    return content | {"history": past.transitions, "more_history": past.next_cursor is not None}


def brief_of(session: Session, state: AppState, page: Page) -> Content:
    """Return the alerts that fire, for pages about something else."""
    listed = listing.list_alerts(session.connection(), Standing.FIRING, page.server or None, None, "ok")
    return {
        "firing": [
            alert_views.alert_row(item, state.clock()) for item in listed.alerts if not item.is_heartbeat
        ],
        "failing_channels": failing_channels(session.connection()),
    }


def one_of(session: Session, state: AppState, name: str) -> Content:
    """Return one alert with its card and timeline; ``problem`` says why there is none."""
    try:
        found = detail.get_detail(session.connection(), name)
    except NotFound as error:
        return {"problem": error, "charts": [], "found": None}
    return {
        "problem": None,
        "charts": [],
        "found": found,
        "row": alert_views.alert_row(found.alert, state.clock()),
        "views": alert_views,
    }


def rules_of(session: Session) -> Content:
    """Return every rule, each with how many alerts of it fire."""
    listed = listing.list_alerts(session.connection(), None, None, None, "ok").alerts
    firing: dict[str, int] = {}
    for item in listed:
        if item.state in alert_views.LOUD:
            firing[item.rule] = firing.get(item.rule, 0) + 1
    return {
        "problem": None,
        "charts": [],
        "rules": rules.list_rules(session).rules,
        "firing": firing,
        "views": alert_views,
    }


def channels_of(session: Session) -> Content:
    """Return channels, what kinds there are, and the newest deliveries."""
    connection = session.connection()
    log = channels.list_deliveries(connection, None, None, MAX_DELIVERIES, None)
    return {
        "problem": None,
        "charts": [],
        "channels": channels.list_channels(connection).channels,
        "kinds": channels.list_kinds().kinds,
        "deliveries": log.deliveries,
        "more_deliveries": log.next_cursor is not None,
        "views": alert_views,
    }


def delivery_of(session: Session, number: int) -> Content:
    """Return one delivery with its attempts; ``problem`` says why there is none."""
    try:
        return {
            "problem": None,
            "charts": [],
            "delivery": channels.get_delivery(session.connection(), number),
            "views": alert_views,
        }
    except NotFound as error:
        return {"problem": error, "charts": [], "delivery": None}


def _health(state: AppState) -> str:
    return "ok" if state.alerts_health is None else state.alerts_health()
