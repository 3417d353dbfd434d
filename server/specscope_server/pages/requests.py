"""The page about finished requests, the rows that "load more" adds, and the page of one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy.orm import Session

from specscope_server.acceptance.positions import HOW_TO_SEND
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.params import TimeRange, make_time_range
from specscope_server.kit.web.state import AppState, Db, State
from specscope_server.pages import data, request_views
from specscope_server.pages.page import Page
from specscope_server.pages.templates import render
from specscope_server.requests import breakdown, detail, figures, listing, parts, population, summary
from specscope_server.requests.coverage import read_coverage
from specscope_server.requests.filters import Scope, scope_of
from specscope_server.requests.sorting import Sort
from specscope_server.servers import service as servers
from specscope_server.store.lookup import server_by_name

router = APIRouter(include_in_schema=False)
REQUESTS = Page("/requests", "Requests", fragment="/fragments/requests", own_keys=("search", "sort", "by"))
PARTS = ("requests_head", "requests_list", "requests_outliers", "requests_breakdown")
ROWS = 25
Content = dict[str, Any]


@router.get("/requests")
def page(request: Request, db: Db, state: State) -> Response:
    """Show the requests of a range: as a whole, one by one, and in parts."""
    content = requests_of(db, state, request.query_params)
    problem = content["problem"]
    return render("requests.html", problem.status if problem else 200, **content)


@router.get("/fragments/requests")
def fragment(request: Request, db: Db, state: State) -> Response:
    """Render the live parts alone."""
    return render("fragment.html", parts=PARTS, **requests_of(db, state, request.query_params))


@router.get("/fragments/requests/rows")
def rows(request: Request, db: Db, state: State) -> Response:
    """Render further rows of the list."""
    content = _start(db, state, request.query_params)
    if content["problem"] is None and content["scope"] is not None:
        content |= _guarded(content, lambda: _list(db, content, request.query_params.get("cursor")))
    return render("requests_rows.html", **content)


@router.get("/requests/{number}")
def one(request: Request, db: Db, state: State, number: str) -> Response:
    """Show one request beside its peers."""
    shown = data.make_page(db, state, request.query_params, REQUESTS, all_servers=False)
    shown = replace(shown, title="Request", has_range=False)
    server = server_by_name(db, shown.server)
    if not (number.isascii() and number.isdigit() and int(number[:20]) <= MAX_ID):
        raise NotFound(f"there is no request with the number {number[:40]!r}; the page Requests lists them")
    found = detail.read_detail(db, server.name, server.id, int(number))
    return render("request.html", page=shown, found=found, views=request_views)


def requests_of(session: Session, state: AppState, query: Mapping[str, str]) -> Content:
    """Return all that the page shows; ``problem`` says why there is nothing."""
    content = _start(session, state, query)
    if content["scope"] is None:
        return content
    return content | _guarded(content, lambda: _whole(session, content, query.get("cursor")))


def _guarded(content: Content, build: Any) -> Content:
    try:
        found: Content = build()
    except (NotFound, InvalidInput) as error:
        return {"problem": error}
    return found


def _start(session: Session, state: AppState, query: Mapping[str, str]) -> Content:
    """Return the page and the scope that was chosen; the scope is None where nothing can be shown."""
    shown = data.make_page(session, state, query, REQUESTS, all_servers=False)
    content: Content = {
        "page": shown, "problem": None, "scope": None, "summary": None, "views": request_views,
        "default_launch": data.NEWEST, "how_to_send": HOW_TO_SEND, "charts": True,
    }  # fmt: skip
    if not shown.servers and not shown.server:
        return content
    try:
        content["moment"] = make_time_range(state, shown.from_, shown.to)
        content["scope"] = _scope(session, shown, content["moment"])
    except (NotFound, InvalidInput) as error:
        content["problem"] = error
    return content


def _scope(session: Session, shown: Page, moment: TimeRange) -> Scope:
    launch, search = shown.query.get("launch", data.NEWEST), shown.query.get("search", "")
    return scope_of(session, shown.server, launch, moment, (), search)


def _whole(session: Session, content: Content, cursor: str | None) -> Content:
    shown, scope = content["page"], content["scope"]
    by = shown.query.get("by", parts.DEFAULT)
    title = parts.title_of(by)
    found = population.read_population(session, scope)
    window: Window = content["moment"].window()
    whole = summary.summary_of(session, shown.server, scope, found, read_coverage(session, scope, window))
    in_range = servers.count_launches(session, shown.server, window)
    return {
        **_list(session, content, cursor),
        "summary": whole,
        "cards": request_views.cards_of(whole),
        "breakdown": breakdown.breakdown_of(shown.server, scope, by, title, found),
        "choices": request_views.choices_of(by, whole.labels),
        "in_range": in_range,
        "figures": figures,
    }


def _list(session: Session, content: Content, cursor: str | None) -> Content:
    shown, scope = content["page"], content["scope"]
    sort = shown.query.get("sort", Sort.NEWEST.value)
    if sort not in [item.value for item in Sort]:
        raise InvalidInput(f"sort={sort[:40]!r} is no order; choose one by a column's head")
    found = listing.list_requests(session, shown.server, scope, Sort(sort), ROWS, cursor)
    return {
        "requests": found.requests, "next_cursor": found.next_cursor, "cursor": cursor,
        "headings": request_views.headings(sort),
    }  # fmt: skip
