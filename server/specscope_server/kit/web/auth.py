"""ASGI layer: when a token is set, all but health, login and static files needs it (bearer or cookie)."""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from specscope_server.kit.clock import Clock
from specscope_server.kit.web.problems import MEDIA_TYPE, problem_body

COOKIE = "specscope_session"
SESSION_SECONDS = 7 * 24 * 3600
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/login"})
OPEN_PREFIX = "/static/"


def is_same(given: str, wanted: str) -> bool:
    """Compare in constant time (of the digests, so that not even the length shows)."""
    digests = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, wanted))
    return hmac.compare_digest(*digests)


def session_cookie(token: str, expires_ms: int) -> str:
    """Return a cookie value that proves knowledge of ``token`` without holding it."""
    signature = hmac.new(token.encode(), f"session:{expires_ms}".encode(), hashlib.sha256).hexdigest()
    return f"{expires_ms}.{signature}"


def is_session(value: str, token: str, now_ms: int) -> bool:
    """Tell whether a cookie value was made by `session_cookie` with this token and has not expired."""
    expires, _, _ = value.partition(".")
    if not (expires.isascii() and expires.isdigit() and len(expires) <= 15):
        return False
    return is_same(value, session_cookie(token, int(expires))) and int(expires) > now_ms


class TokenAuth:
    """Refuse requests without the token; a browser that asks for a page is sent to the login page."""

    def __init__(self, app: ASGIApp, token: str, clock: Clock) -> None:
        self.app = app
        self.token = token
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, redirect to /login, or answer 401."""
        if scope["type"] != "http" or self._may_pass(scope):
            await self.app(scope, receive, send)
            return
        await _refusal(scope)(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        path = scope["path"]
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIX):
            return True
        headers = Headers(scope=scope)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return is_same(given.strip(), self.token)
        return is_session(_cookie(headers), self.token, self.clock())


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _refusal(scope: Scope) -> Response:
    path = scope["path"]
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if wants_page and scope["method"] == "GET" and not path.startswith("/api/"):
        query = scope["query_string"].decode("latin-1")
        target = quote(f"{path}?{query}" if query else path, safe="")
        return RedirectResponse(f"/login?next={target}", 303)
    detail = (
        "a token is needed and was missing, wrong or expired; send 'Authorization: Bearer TOKEN' "
        "or log in at /login"
    )
    headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
    return Response(problem_body(401, "Unauthorized", detail, path), 401, headers, MEDIA_TYPE)
