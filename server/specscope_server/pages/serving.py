"""A page that is rendered whole on the server, and beside it a fragment with only its live parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fastapi import APIRouter, Request, Response

from specscope_server.kit.web.state import AppState, Db, State
from specscope_server.pages.page import Page
from specscope_server.pages.templates import render

Content: TypeAlias = dict[str, Any]
Build: TypeAlias = Callable[[Request, Db, AppState], Content]


def add_page(router: APIRouter, page: Page, build: Build, *parts: str, template: str = "live.html") -> None:
    """Serve a page; ``parts`` are the names of its live templates.

    A fragment is always 200: what went wrong is its content. A page says so in its status.
    """

    def whole(request: Request, db: Db, state: State) -> Response:
        content = build(request, db, state)
        problem = content["problem"]
        return render(template, problem.status if problem else 200, parts=parts, **content)

    def fragment(request: Request, db: Db, state: State) -> Response:
        content = build(request, db, state)
        charts = content["charts"] if template == "live.html" else []  # others have no place for new ones
        return render("fragment.html", parts=parts, new_charts=charts, **content)

    router.add_api_route(page.path, whole, methods=["GET"], name=f"page {page.title}")
    router.add_api_route(page.fragment, fragment, methods=["GET"], name=f"parts of {page.title}")
