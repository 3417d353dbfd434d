"""POST /login and /logout: trade a token for a cookie that scripts cannot read (the page: a template)."""

from __future__ import annotations

from urllib.parse import parse_qs, quote

import structlog
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from specscope_server.kit.clock import Clock
from specscope_server.kit.errors import InvalidInput, TooLarge, Unauthorized
from specscope_server.kit.web.auth import COOKIE, SESSION_SECONDS, client_of, too_many
from specscope_server.kit.web.guard import Guard
from specscope_server.kit.web.scopes import Scope

_MAX_FORM_BYTES = 8_192
log = structlog.get_logger(__name__)


def login_router(guard: Guard | None, clock: Clock) -> APIRouter:
    """Return the two routes; without a configured token, logging in does nothing and goes on."""
    router = APIRouter(include_in_schema=False)

    @router.post("/login")
    async def log_in(request: Request) -> Response:
        form = await _form(request)
        target = local_path(form.get("next", "/"))
        return RedirectResponse(target, 303) if guard is None else await _log_in(request, guard, form, target)

    @router.post("/logout")
    async def log_out() -> Response:
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
        return answer

    async def _log_in(request: Request, guard: Guard, form: dict[str, str], target: str) -> Response:
        address = client_of(request.scope)
        wait_seconds = guard.throttle.wait_seconds(address)
        if wait_seconds:
            return too_many(request.scope, wait_seconds)
        grant = await run_in_threadpool(guard.of_token, form.get("token", ""))
        if grant is None or grant.scope is Scope.INGEST:  # such a token could not see a single page
            guard.throttle.failed(address)
            return _refused(request, target)
        answer = RedirectResponse(target, 303)
        cookie = guard.cookie_for(grant, clock() + SESSION_SECONDS * 1_000)
        secure = request.url.scheme == "https"
        # "lax", so that a link in a chat opens the page; no GET changes anything, and POSTs never bring it.
        answer.set_cookie(COOKIE, cookie, SESSION_SECONDS, httponly=True, samesite="lax", secure=secure)
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
    raise Unauthorized(
        "this token is not the one that the server was started with, nor a valid one to read; check it"
    )


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
