"""ASGI layer: security headers on every answer, and a Host check against DNS rebinding."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specscope_server.kit.web.problems import MEDIA_TYPE, problem_body

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",  # charts place themselves with style attributes
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+))(?::[0-9]*)?")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class SecurityHeaders:
    """Add the headers above to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with headers added to the start of the answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class HostCheck:
    """Refuse a Host that is neither loopback nor allowed: a page elsewhere may point its name at us."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self.app = app
        self.allowed = LOOPBACK_NAMES | {host_name(name) or name.lower() for name in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 421."""
        if scope["type"] != "http" or "*" in self.allowed:
            await self.app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"host"]
        header = given[0].decode("latin-1") if len(given) == 1 else ""
        host = host_name(header)
        if host in self.allowed:
            await self.app(scope, receive, send)
            return
        await _refuse(scope, send, host or header)


def host_name(header: str) -> str:
    """Return the name in a Host header, lower case, without port and brackets; "" for what is no host."""
    match = _HOST.fullmatch(header.strip().lower())
    return (match[1] or match[2]) if match else ""


async def _refuse(scope: Scope, send: Send, host: str) -> None:
    detail = (
        f"this server does not answer for the host name {host[:100]!r}; reach it by a loopback name, "
        f"or add the name "
        "to allowed_hosts (--allowed-hosts, SPECSCOPE_ALLOWED_HOSTS)"
    )
    body = problem_body(421, "Misdirected request", detail, scope["path"])
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 421, "headers": headers})
    await send({"type": "http.response.body", "body": body})
