"""ASGI layer: when a token is set, all but health, login and static files needs one (bearer or cookie).

What a token may do besides follows from its scope and the shape of the route: `kit.web.scopes`.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from specscope_server.kit.web.actor import note_actor
from specscope_server.kit.web.guard import Guard, is_same, is_session, session_cookie
from specscope_server.kit.web.problems import MEDIA_TYPE, problem_body
from specscope_server.kit.web.scopes import Grant, scopes_for

__all__ = ["COOKIE", "OPEN_PATHS", "OPEN_PREFIX", "SESSION_SECONDS", "TokenAuth", "client_of"]
__all__ += ["is_same", "is_session", "session_cookie"]

COOKIE = "specscope_session"
SESSION_SECONDS = 7 * 24 * 3600
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
OPEN_PREFIX = "/static/"
log = structlog.get_logger(__name__)


class TokenAuth:
    """Refuse requests without a token; a browser that asks for a page is sent to the login page."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app = app
        self.guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, redirect to /login, or answer 401, 403, 429 or 503."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or scope["path"].startswith(OPEN_PREFIX):
            await self.app(scope, receive, send)
            return
        answer = await self._refusal(scope)
        await (self.app if answer is None else answer)(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        """Return why the request may not pass; None when it may."""
        bearer, cookie = _credentials(Headers(scope=scope))
        credential = cookie if bearer is None else bearer
        grant = self.guard.recently(credential) if credential else None
        if grant is None and credential:
            wait_seconds = self.guard.throttle.wait_seconds(client_of(scope))
            if wait_seconds:
                return too_many(scope, wait_seconds)
            try:
                look_up = self.guard.of_cookie if bearer is None else self.guard.of_token
                grant = await run_in_threadpool(look_up, credential)
            except SQLAlchemyError as error:
                log.warning("token_store_unavailable", reason=type(error).__name__)
                return _unavailable(scope)
        if grant is None:
            if bearer:
                self.guard.throttle.failed(client_of(scope))
            return _unknown(scope)
        if grant.scope not in scopes_for(scope["method"], scope["path"]):
            return _forbidden(scope, grant)
        note_actor(scope, grant.name)
        return None


def client_of(scope: Scope) -> str:
    """Return the address that asks; "" when the server does not know it."""
    return str((scope.get("client") or ("",))[0])


def _credentials(headers: Headers) -> tuple[str | None, str]:
    """Return (bearer token or None, session cookie or "")."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return given.strip(), ""
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None, ""
    return None, morsel.value if morsel else ""


def _unknown(scope: Scope) -> Response:
    path = scope["path"]
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if wants_page and scope["method"] == "GET" and not path.startswith("/api/"):
        query = scope["query_string"].decode("latin-1")
        target = quote(f"{path}?{query}" if query else path, safe="")
        return RedirectResponse(f"/login?next={target}", 303)
    detail = (
        "a token is needed and was missing, wrong, revoked or expired; send 'Authorization: Bearer TOKEN' "
        "or log in at /login"
    )
    return _problem(scope, 401, "Unauthorized", detail, {"WWW-Authenticate": "Bearer"})


def _forbidden(scope: Scope, grant: Grant) -> Response:
    wanted = " or ".join(sorted(scopes_for(scope["method"], scope["path"])))
    detail = (
        f"the token {grant.name[:60]!r} has the scope {grant.scope}, and {scope['method'][:20]} "
        f"{scope['path'][:100]} needs {wanted}; make one with: specscope token create NAME --scope …"
    )
    return _problem(scope, 403, "Forbidden", detail, {})


def too_many(scope: Scope, wait_seconds: int) -> Response:
    """Return the answer to an address that failed too often."""
    detail = f"too many wrong tokens came from this address; try again in {wait_seconds} s"
    return _problem(scope, 429, "Too many requests", detail, {"Retry-After": str(wait_seconds)})


def _unavailable(scope: Scope) -> Response:
    detail = "the database did not answer, so the token could not be looked up; try again, and see /readyz"
    return _problem(scope, 503, "Unavailable", detail, {"Retry-After": "5"})


def _problem(scope: Scope, status: int, title: str, detail: str, headers: dict[str, str]) -> Response:
    body = problem_body(status, title, detail, scope["path"])
    return Response(body, status, {**headers, "Cache-Control": "no-store"}, MEDIA_TYPE)
