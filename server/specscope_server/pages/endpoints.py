"""Pages for people: each is rendered whole on the server, and its live part can be fetched alone."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from specscope_server.acceptance import figures, heatmap_figures, position_figures
from specscope_server.kit.web.state import AppState, Db
from specscope_server.pages import alert_routes, alerts, assets, data, patterns, requests
from specscope_server.pages.canary import CANARY_RANGE, canary_of
from specscope_server.pages.drift import OWN_KEYS, drift_of
from specscope_server.pages.events import events_of
from specscope_server.pages.glossary import GROUPS
from specscope_server.pages.page import Page, clean_query
from specscope_server.pages.serving import Content, add_page
from specscope_server.pages.surface_view import OWN_KEYS as SURFACE_KEYS
from specscope_server.pages.templates import render
from specscope_server.pages.timing import time_of
from specscope_server.pages.traces import captures_shown, traces_of
from specscope_server.sources import figures as source_figures
from specscope_server.traces.capturing import captures_of

router = APIRouter(include_in_schema=False)
router.include_router(assets.router)
router.include_router(requests.router)
router.include_router(alert_routes.router)

OVERVIEW = Page("/", "Overview", fragment="/fragments/overview")
ACCEPTANCE = Page("/acceptance", "Acceptance", fragment="/fragments/acceptance")
TIME = Page("/time", "Time", fragment="/fragments/time", own_keys=("by", *SURFACE_KEYS))
DRIFT = Page("/drift", "Drift", fragment="/fragments/drift", own_keys=OWN_KEYS)
CANARY = Page("/canary", "Canary", fragment="/fragments/canary")
SOURCES = Page("/sources", "Sources", fragment="/fragments/sources")
GLOSSARY = Page("/glossary", "Glossary", has_range=False)
PATTERNS = Page("/patterns", "Patterns", servers=("gpu1:30000", "gpu2:30000"), server="gpu1:30000")
LOGIN = Page("/login", "Log in", has_range=False)


def _overview(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, OVERVIEW, all_servers=True)
    charts = [figures.ACCEPT_LENGTH, figures.DRAFT_ACCEPTANCE, figures.THROUGHPUT, figures.LOAD]
    return {
        "page": page,
        "charts": charts if page.server else [],
        **data.overview(db, state, page),
        **events_of(db, state, page),
        **alerts.brief_of(db, state, page),
    }


def _acceptance(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, ACCEPTANCE, all_servers=False)
    charts = [figures.ACCEPT_LENGTH, figures.DRAFT_ACCEPTANCE, figures.ENGINE_RATE, figures.THROUGHPUT]
    content = data.acceptance_of(db, state, page)
    content |= data.requests_of(db, state, page)
    if content["has_histograms"]:
        charts += [position_figures.POSITIONS, position_figures.REQUEST_LENGTHS]
        charts += [heatmap_figures.SURVIVAL, heatmap_figures.CONDITIONAL]
    return {
        "page": page,
        "charts": charts if page.server else [],
        "launches": data.launches_of(db, page),
        **content,
    }


def _time(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, TIME, all_servers=False)
    settings = request.app.state.settings
    content = time_of(db, state, page) | traces_of(db, page, settings.trace_folder)
    content |= captures_shown(captures_of(request.app).states(), page, settings)
    return {"page": page, **content, "charts": [*content["charts"], *content["trace_charts"]]}


def _drift(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, DRIFT, all_servers=False)
    return {"page": page, **drift_of(db, state, page)}


def _canary(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, CANARY, all_servers=False)
    page = replace(page, default_range=CANARY_RANGE)
    return {"page": page, **canary_of(db, state, page)}


def _sources(request: Request, db: Db, state: AppState) -> Content:
    page = data.make_page(db, state, request.query_params, SOURCES, all_servers=True)
    page = replace(page, has_range=bool(page.server))
    return {
        "page": page,
        "charts": list(source_figures.WORDS) if page.server else [],
        **data.sources_of(db, state, page),
    }


add_page(router, OVERVIEW, _overview, "overview_part", "events_part")
add_page(router, ACCEPTANCE, _acceptance, "acceptance_part", "acceptance_tables")
add_page(
    router, TIME, _time, "time_part", "time_tables", "time_surface", "time_experts", "traces_part",
    "trace_capture_part",
)  # fmt: skip
add_page(router, DRIFT, _drift, "drift_part", "drift_tables", "drift_tools")
add_page(router, CANARY, _canary, "canary_part", "canary_tables")
add_page(router, SOURCES, _sources, "sources_part")


@router.get("/glossary")
def glossary(request: Request) -> Response:
    """Explain the words and formulas."""
    return render(
        "glossary.html",
        page=Page("/glossary", "Glossary", clean_query(request.query_params), has_range=False),
        groups=GROUPS,
    )


@router.get("/patterns")
def patterns_page(request: Request) -> Response:
    """Show every component with made-up content, for those who work on the pages."""
    page = Page(
        "/patterns",
        "Patterns",
        clean_query(request.query_params),
        servers=("gpu1:30000", "gpu2:30000"),
        server="gpu1:30000",
    )
    return render("patterns.html", page=page, **patterns.content())


@router.get("/login")
def login(request: Request) -> Response:
    """Ask for the token; the form is handled where sessions are made."""
    query = request.query_params
    page = replace(LOGIN, query=clean_query(query))
    return render("login.html", page=page, next=query.get("next", "/"), failed="failed" in query)
