"""ASGI layers: HEAD answered like GET, and unexpected errors turned into answers like any other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OnError = Callable[[Request, Exception], Response | Awaitable[Response]]


class HeadAsGet:
    """Answer HEAD with the headers of GET and no body (RFC 9110 §9.3.2); monitors ask so."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on as GET."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        # The same scope, not a copy: the layers outside read the route from it.
        scope["method"] = "GET"
        try:
            await self.app(scope, receive, send_without_body)
        finally:
            scope["method"] = "HEAD"


class CatchUnexpected:
    """Answer errors that nobody expected inside our layers: the framework would do so outside of them,
    without the security headers, and raise the error again into the server, which drops the connection.
    """

    def __init__(self, app: ASGIApp, on_error: OnError) -> None:
        self.app = app
        self.on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; answer an error unless an answer has begun already."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        except Exception as error:
            if begun:
                raise
            answer = self.on_error(Request(scope, receive), error)
            response = answer if isinstance(answer, Response) else await answer
            await response(scope, receive, send)
