"""Pages about alerts: now, one alert, rules and their editor, channels and deliveries."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from fastapi import APIRouter, Request, Response

from specscope_server.alerts.rules import service as rules
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.actor import actor_of
from specscope_server.kit.web.bodies import Body
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.state import AppState, Db, State
from specscope_server.pages import alert_editor, alert_views, alerts, data
from specscope_server.pages.page import Page
from specscope_server.pages.serving import Content, add_page
from specscope_server.pages.templates import render

router = APIRouter(include_in_schema=False)

NOW = Page("/alerts", "Alerts", fragment="/fragments/alerts", default_range=alerts.ALERTS_RANGE)
RULES = Page("/alerts/rules", "Rules", fragment="/fragments/alerts/rules", has_range=False)
EDITOR = Page("/alerts/edit", "Edit rule", has_range=False, own_keys=("name",))
CHANNELS = Page("/alerts/channels", "Channels", fragment="/fragments/alerts/channels", has_range=False)
ALERT = Page("/alerts/one", "Alert", has_range=False)


def _now(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, NOW, all_servers=True)
    page = replace(page, default_range=alerts.ALERTS_RANGE)
    return {"page": page, **alerts.now_of(db, state, page)}


def _rules(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, RULES, all_servers=True)
    return {"page": page, **alerts.rules_of(db)}


def _channels(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, CHANNELS, all_servers=True)
    return {"page": page, **alerts.channels_of(db)}


add_page(router, NOW, _now, "alerts_now", "alerts_history", template="alerts.html")
add_page(router, RULES, _rules, "alert_rules_list", template="alert_rules.html")
add_page(
    router, CHANNELS, _channels, "alert_channels_list", "alert_deliveries", template="alert_channels.html"
)


@router.get("/alerts/edit")
def editor(request: Request, db: Db, state: State) -> Response:
    """Show the editor of a rule, or of a new one."""
    page = data.make_page(db, state, request.query_params, EDITOR, all_servers=True)
    name = page.query.get("name", "")
    item = rules.get_rule(db, name) if name else None
    page = replace(page, title=f"Rule {name}" if name else "New rule")
    return render(
        "alert_editor.html", page=page, item=item, text=alert_editor.rule_text(item.rule if item else None),
        versions=rules.versions(db, name).versions if item else [], views=alert_views, charts=[],
    )  # fmt: skip


@router.post("/fragments/alerts/rule")
def edited(request: Request, db: Db, state: State, body: Body) -> Response:
    """Check, try or store what the editor holds."""
    try:
        asked = msgspec.json.decode(body.content, type=alert_editor.Asked)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"the editor's question cannot be read: {error}") from None
    found = alert_editor.answer(db, state, asked, actor_of(request))
    return render("alert_editor_answer.html", answer=found, asked=asked, views=alert_views)


@router.get("/alerts/deliveries/{number}")
def delivery(request: Request, db: Db, state: State, number: str) -> Response:
    """Show one delivery with its attempts."""
    if not (number.isascii() and number.isdigit() and int(number[:20]) <= MAX_ID):
        raise NotFound(f"there is no delivery {number[:40]!r}; they are listed under Channels")
    page = replace(data.make_page(db, state, request.query_params, ALERT, all_servers=True), title="Delivery")
    content = alerts.delivery_of(db, int(number))
    problem = content["problem"]
    return render("alert_delivery.html", problem.status if problem else 200, page=page, **content)


@router.get("/alerts/{name}")
def one(request: Request, db: Db, state: State, name: str) -> Response:
    """Show one alert with its card and its timeline."""
    page = data.make_page(db, state, request.query_params, ALERT, all_servers=True)
    content = alerts.one_of(db, state, name)
    problem = content["problem"]
    return render("alert.html", problem.status if problem else 200, page=page, **content)
