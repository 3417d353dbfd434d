"""Errors of pages in the look of pages. The API keeps its problem documents; both say the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from specscope_server.pages.page import Page, clean_query
from specscope_server.pages.templates import render

Handler = Callable[[Request, Exception], Response | Awaitable[Response]]
_NO_PAGES = ("/api/", "/static/", "/fragments/", "/metrics", "/healthz", "/readyz")


def install(app: FastAPI) -> None:
    """Show errors as a page to those who asked for one. Call after the problem documents were installed."""
    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = _for_people(handler)


def _for_people(handler: Handler) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        answer = handler(request, error)
        response = answer if isinstance(answer, Response) else await answer
        if not wants_page(request):
            return response
        return await run_in_threadpool(_page, request, response)

    return handle


def wants_page(request: Request) -> bool:
    """Tell whether a person with a browser asked for a page."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(_NO_PAGES)


def _page(request: Request, problem: Response) -> Response:
    words = orjson.loads(bytes(problem.body))
    page = Page(request.url.path, words["title"], clean_query(request.query_params), has_range=False)
    shown = render(
        "error.html",
        problem.status_code,
        page=page,
        **{key: words[key] for key in ("status", "title", "detail")},
    )
    for name in ("www-authenticate", "retry-after"):
        if name in problem.headers:
            shown.headers[name] = problem.headers[name]
    return shown
