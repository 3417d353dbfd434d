"""Every error leaves as an RFC 9457 problem document: type, title, status, detail, instance, errors?"""

from __future__ import annotations

import http
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from specscope_server.kit.errors import SpecscopeError

MEDIA_TYPE = "application/problem+json"
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
log = structlog.get_logger(__name__)


class ProblemItem(BaseModel):
    """One wrong input among several."""

    location: str = Field(description="Where the input stands, e.g. query.points")
    reason: str = Field(description="What is wrong with it")
    input: str = Field(description="The input as received, shortened")


class Problem(BaseModel):
    """RFC 9457 problem document."""

    type: str = Field(
        description="Stable name of the kind of problem", examples=["urn:specscope:problem:not-found"]
    )
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(description="Names the input, the reason and the remedy")
    instance: str = Field(description="Path that was asked for", examples=["/api/v1/servers/gpu1"])
    errors: list[ProblemItem] | None = Field(default=None, description="Each wrong input, for invalid input")


def problem_body(
    status: int, title: str, detail: str, instance: str, errors: Sequence[Mapping[str, str]] | None = None
) -> bytes:
    """Return the JSON of one problem document."""
    slug = title.lower().replace(" ", "-")
    body: dict[str, Any] = {
        "type": f"urn:specscope:problem:{slug}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
    }
    if errors is not None:
        body["errors"] = list(errors)
    return orjson.dumps(body)


def problem_response(
    request: Request,
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem document for the path of ``request``."""
    body = problem_body(status, title, detail, request.url.path, errors)
    return Response(body, status, {**(headers or {}), "Cache-Control": "no-store"}, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Make every error of ``app`` a problem document; an unexpected error's text never leaves the process."""
    app.add_exception_handler(SpecscopeError, _expected)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DataError, _not_storable)
    app.add_exception_handler(OperationalError, _store_busy)
    app.add_exception_handler(InterfaceError, _store_busy)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def _expected(request: Request, error: Exception) -> Response:
    assert isinstance(error, SpecscopeError)
    headers = _HEADERS.get(error.status)
    return problem_response(
        request, error.status, error.title, error.detail, errors=error.items, headers=headers
    )


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    items = [_item(entry) for entry in error.errors()]
    detail = "; ".join(f"{item['location']}={item['input']}: {item['reason']}" for item in items)
    return problem_response(request, 422, "Invalid input", detail, errors=items)


def _item(entry: Mapping[str, Any]) -> dict[str, str]:
    location = ".".join(str(part) for part in entry.get("loc", ()))
    given = "(missing)" if entry.get("type") == "missing" else repr(entry.get("input"))
    return {"location": location, "reason": str(entry.get("msg", "is not valid")), "input": given[:100]}


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = http.HTTPStatus(error.status_code).phrase.capitalize()
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    detail = {
        404: f"there is nothing at {request.url.path[:200]}; the API is described at /api/v1/openapi.json",
        405: f"{request.method[:20]} is not possible at {request.url.path[:200]}; see the Allow header",
    }.get(error.status_code, str(error.detail))
    return problem_response(request, error.status_code, title, detail, headers=headers)


def _allowed(request: Request) -> str:
    """Return the methods of every route at this path; the router names only those of the first."""
    scopes = {method: {**request.scope, "method": method} for method in _METHODS}
    return ", ".join(
        method
        for method, scope in scopes.items()
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    )


def _not_storable(request: Request, error: Exception) -> Response:
    detail = "a parameter holds what no database can hold (a NUL character, a number over 64 bits)"
    return problem_response(request, 422, "Invalid input", detail)


def _store_busy(request: Request, error: Exception) -> Response:
    log.warning("store_unavailable", path=request.url.path, reason=type(error).__name__)
    detail = (
        "the database did not answer (busy, locked, unreachable or not migrated); try again, and see /readyz"
    )
    return problem_response(request, 503, "Unavailable", detail, headers={"Retry-After": "5"})


def _gone(request: Request, error: Exception) -> Response:
    """Nobody hears this: the sender went away before its body had arrived."""
    return problem_response(request, 400, "Bad request", "the body ended before it was complete")


def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected_error", path=request.url.path, exc_info=error)
    detail = "something unexpected happened on the server; its log has the details"
    return problem_response(request, 500, "Internal error", detail)
