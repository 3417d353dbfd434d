"""One HTTP GET with everything bounded: time, bytes and where the answer may come from.

Whatever a server does, the result is an `Answer` with a state in plain words; only cancellation is raised.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx
import msgspec

from specscope_collectors import bodies
from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import HealthState, Target

NOT_SERVING = frozenset({502, 503, 504})
"""Statuses of a server that is starting, stopping or away."""

_NO_TIMEOUT = httpx.Timeout(None)  # `fetch` sets one deadline for the whole answer instead


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one GET. ``body`` is the decoded body when ``state`` is OK, else empty."""

    url: str
    state: HealthState
    duration_seconds: float
    status: int | None = None
    content_type: str = ""
    body: bytes = b""
    body_bytes: int | None = None
    """Decoded bytes read, also when the answer was given up on the way."""
    detail: str = ""
    remedy: str = ""
    nothing_serves: bool = False
    """Certain that no server worked there: the connection was refused, or a proxy says so. A time-out or a
    network that is away says nothing about the server."""

    @property
    def ok(self) -> bool:
        """True when there is a body to read."""
        return self.state is HealthState.OK


class _Outcome(msgspec.Struct, frozen=True):
    state: HealthState
    detail: str = ""
    remedy: str = ""
    status: int | None = None
    content_type: str = ""
    body: bytes = b""
    body_bytes: int | None = None
    nothing_serves: bool = False


def make_client(options: CollectorOptions, *, with_tls: bool = True) -> httpx.AsyncClient:
    """Return a client for one target: no environment proxies, no redirects. Raises `OptionsError`."""
    context = options.tls_context() if with_tls else None
    limits = httpx.Limits(max_connections=4, max_keepalive_connections=2)
    return httpx.AsyncClient(
        verify=context or False, trust_env=False, follow_redirects=False, timeout=_NO_TIMEOUT, limits=limits
    )


def headers_for(url: str, target: Target, options: CollectorOptions) -> dict[str, str]:
    """Return request headers; the key goes to the target's own origin (scheme, host, port) only."""
    headers = {"User-Agent": "specscope-collector", "Accept-Encoding": "identity"}
    if options.api_key and _origin(url) == _origin(target.base_url):
        headers["Authorization"] = f"Bearer {options.api_key}"
    return headers


async def fetch(
    client: httpx.AsyncClient,
    url: str,
    *,
    options: CollectorOptions,
    headers: Mapping[str, str],
    refusal_bytes: int = 0,
) -> Answer:
    """GET ``url`` within the total time and the number of decoded bytes that ``options`` allow.

    ``refusal_bytes``: keep so much of the body of an answer that is not 200, in which some APIs say why.
    """
    started = time.monotonic()
    try:
        async with asyncio.timeout(options.scrape_timeout_seconds):
            outcome = await _get(client, url, options.max_body_bytes, headers, refusal_bytes)
    except TimeoutError:
        outcome = _timed_out(url, options.scrape_timeout_seconds)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError, bodies.BodyError) as error:
        outcome = _explain(error, url)
    fields = msgspec.structs.asdict(outcome)
    return Answer(url=url, duration_seconds=time.monotonic() - started, **fields)


async def _get(
    client: httpx.AsyncClient, url: str, limit_bytes: int, headers: Mapping[str, str], refusal_bytes: int
) -> _Outcome:
    client.cookies.clear()  # a cookie set by one answer must not travel with the next request
    async with client.stream("GET", url, headers=dict(headers)) as response:
        if response.status_code != 200:
            outcome = _refused(response, url, key_was_sent="Authorization" in headers)
            return msgspec.structs.replace(outcome, body=await _why(response, refusal_bytes))
        body = await bodies.read_bounded(response, limit_bytes)
        content_type = response.headers.get("content-type", "")
        return _Outcome(
            HealthState.OK, status=200, content_type=content_type[:200], body=body, body_bytes=len(body)
        )


async def _why(response: httpx.Response, limit_bytes: int) -> bytes:
    """Return what a refusing answer says; nothing when that is more than was asked for, or garbled."""
    try:
        return await bodies.read_bounded(response, limit_bytes) if limit_bytes else b""
    except bodies.BodyError:
        return b""


def _refused(response: httpx.Response, url: str, *, key_was_sent: bool) -> _Outcome:
    status = response.status_code
    state, detail, remedy = (
        HealthState.HTTP_ERROR,
        f"{url} answered HTTP {status}",
        "look into the server's log",
    )
    if 300 <= status < 400:
        where = urlsplit(response.headers.get("location", "")).netloc.rpartition("@")[2] or "another path"
        detail = f"{url} redirects (HTTP {status}) to {where[:200]}; redirects are not followed"
        remedy = "give --watch the address that answers itself"
    elif status in (401, 403):
        sent = "the key that was sent is not accepted" if key_was_sent else "it wants a key and none was sent"
        state, detail = HealthState.UNAUTHORIZED, f"{url}: {sent} (HTTP {status})"
        remedy = "set SPECSCOPE_ENGINE_API_KEY to the key that the server was started with (--api-key)"
    elif status == 404:
        state, detail, remedy = HealthState.DISABLED, f"{url} does not exist there (HTTP 404)", ""
    elif status in NOT_SERVING:
        remedy = (
            "the server is starting, shutting down or behind a proxy that cannot reach it; it is tried again"
        )
    return _Outcome(state, detail, remedy, status=status, nothing_serves=status in NOT_SERVING)


def _timed_out(url: str, timeout_seconds: float) -> _Outcome:
    return _Outcome(
        HealthState.TIMEOUT,
        f"{url} gave no complete answer within {timeout_seconds:g} s",
        "the server hangs, is overloaded or is too far away; compare with `curl` from this machine",
    )


def _explain(error: Exception, url: str) -> _Outcome:
    """Turn an exception into a state; TLS first, since its failures arrive as connection errors."""
    tls = _find(error, ssl.SSLError)
    if isinstance(error, bodies.TooLargeError):
        return _Outcome(
            HealthState.TOO_LARGE, f"{url}: {error}", bodies.TOO_LARGE_REMEDY, 200, "", b"", error.seen_bytes
        )
    if isinstance(error, bodies.BodyError):
        return _Outcome(
            HealthState.INVALID,
            f"{url}: {error}",
            "a proxy may garble the answer; watch the engine itself",
            200,
        )
    if tls is not None:
        return _tls(tls, url)
    if isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError):
        return _Outcome(
            HealthState.INVALID,
            f"{url} broke off or garbled its answer ({_words(error)})",
            "the connection was cut or this is not an HTTP server (https:// needed?); it is tried again",
        )
    return _Outcome(
        HealthState.UNREACHABLE,
        f"{url} cannot be reached ({_words(error)})",
        "check that the server runs, the host name and the port (SGLang's default is 30000), and firewalls",
        nothing_serves=_find(error, ConnectionRefusedError) is not None,
    )


def _tls(error: BaseException, url: str) -> _Outcome:
    reason = _words(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = "name its certificate authority with --ca-file, or watch the name in its certificate"
    elif "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        remedy = "that port speaks plain HTTP; use http:// instead of https://"
    else:
        remedy = "check the certificate and TLS settings of the server"
    return _Outcome(HealthState.TLS_ERROR, f"{url}: no secure connection ({reason})", remedy)


def _find(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """Return the first exception of ``kind`` in the chain of causes, else None.

    A name with several addresses fails with a group, one error for each: all must be of ``kind``.
    """
    for _ in range(10):
        if error is None or isinstance(error, kind):
            return error
        if isinstance(error, BaseExceptionGroup) and all(isinstance(e, kind) for e in error.exceptions):
            return error.exceptions[0]
        error = error.__cause__ or error.__context__
    return None


def _words(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__)[:300]


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.hostname, parts.port
