"""POST /login and /logout: trade the token for a cookie that scripts cannot read (the page: a template)."""

from __future__ import annotations

from urllib.parse import parse_qs, quote

import structlog
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from specscope_server.kit.clock import Clock
from specscope_server.kit.errors import InvalidInput, TooLarge, Unauthorized
from specscope_server.kit.web.auth import COOKIE, SESSION_SECONDS, is_same, session_cookie

_MAX_FORM_BYTES = 8_192
log = structlog.get_logger(__name__)


def login_router(token: str | None, clock: Clock) -> APIRouter:
    """Return the two routes; without a configured token, logging in does nothing and goes on."""
    router = APIRouter(include_in_schema=False)

    @router.post("/login")
    async def log_in(request: Request) -> Response:
        form = await _form(request)
        target = local_path(form.get("next", "/"))
        if token is None:
            return RedirectResponse(target, 303)
        if not is_same(form.get("token", ""), token):
            return _refused(request, target)
        answer = RedirectResponse(target, 303)
        cookie = session_cookie(token, clock() + SESSION_SECONDS * 1_000)
        secure = request.url.scheme == "https"
        # "lax", so that a link in a chat opens the page; no GET changes anything, and POSTs never bring it.
        answer.set_cookie(COOKIE, cookie, SESSION_SECONDS, httponly=True, samesite="lax", secure=secure)
        return answer

    @router.post("/logout")
    async def log_out() -> Response:
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
        return answer

    return router


def local_path(target: str) -> str:
    """Return ``target`` when it is a path of this site, else "/" (no open redirect)."""
    is_local = target.startswith("/") and target[1:2] not in ("/", "\\") and target.isprintable()
    return target if is_local else "/"


def _refused(request: Request, target: str) -> Response:
    log.warning("login_refused", client=request.client.host if request.client else None)
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"/login?failed=1&next={quote(target, safe='')}", 303)
    raise Unauthorized("this token is not the one that the server was started with; check it and try again")


async def _form(request: Request) -> dict[str, str]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise InvalidInput(
            f"content type {media_type[:60]!r} is not a form; send application/x-www-form-urlencoded"
        )
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            raise TooLarge(f"the form is larger than {_MAX_FORM_BYTES} bytes; send only token and next")
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    return {name: values[0] for name, values in fields.items()}
