"""ASGI layer: a page of another site may not change anything here with the reader's session.

Browsers say where a request comes from: in ``Sec-Fetch-Site`` (to HTTPS and loopback only), and in ``Origin``
with every method that changes something. Programs send neither and pass. Source of the rule: OWASP's cheat
sheet on cross-site request forgery, "Fetch Metadata" with "Verifying Origin" as its fallback.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from specscope_server.kit.web.headers import host_name
from specscope_server.kit.web.problems import MEDIA_TYPE, problem_body
from specscope_server.kit.web.scopes import SAFE_METHODS

OWN_SITES = frozenset({"same-origin", "none"})
"""``none``: typed by the reader, or opened from a bookmark."""
FORM_PATHS = frozenset({"/login", "/logout"})
"""Forms of our own pages are sent with ``Origin: null``, since pages ask for no referrer."""


class OriginCheck:
    """Refuse what another site's page sends, unless it only reads."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self.app = app
        self.allowed = frozenset(host_name(name) or name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 403."""
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS:
            headers = Headers(scope=scope)
            if not is_own(headers, scope["path"], self.allowed):
                await _refusal(scope, headers)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def is_own(headers: Headers, path: str, allowed: frozenset[str]) -> bool:
    """Tell whether a request that changes something comes from our own pages, or from no browser at all."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in OWN_SITES
    origin = headers.get("origin")
    if origin is None:
        return True
    if origin == "null":
        return path in FORM_PATHS
    try:
        name = host_name(urlsplit(origin).netloc)
    except ValueError:
        return False
    return bool(name) and (name == host_name(headers.get("host", "")) or name in allowed)


def _refusal(scope: Scope, headers: Headers) -> Response:
    detail = (
        f"a page of {headers.get('origin', 'another site')[:100]!r} sent this, and only our own pages "
        "and programs may change something here; if a proxy renames the host, add the public name to "
        "allowed_hosts"
    )
    body = problem_body(403, "Sent by another site", detail, scope["path"])
    return Response(body, 403, {"Cache-Control": "no-store"}, MEDIA_TYPE)
