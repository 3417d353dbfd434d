"""Send one HTTP request to a receiver that is not trusted, and read as much of its answer as is of use.

No redirect is followed, no proxy is taken from the environment, certificates are checked, nothing is
unpacked: a receiver can neither lead this server elsewhere nor fill its memory.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

import httpcore

from specscope_server.alerts.channels.contract import HttpAnswer, HttpRequest
from specscope_server.alerts.delivery.addresses import AddressPolicy
from specscope_server.alerts.delivery.connecting import Connector, NotConnected, Resolver, resolve
from specscope_server.alerts.delivery.streams import GuardedBackend

MAX_BODY_BYTES = 4_096
MAX_HEADERS = 100
MAX_HEADER_CHARACTERS = 1_000
USER_AGENT = "specscope"
_HEAD_SENT = "http11.send_request_headers.complete"
_BODY_SENT = "http11.send_request_body.complete"


class Lost(Exception):
    """No answer came."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.was_sent = was_sent
        """The whole request left: the receiver may have taken it."""


class Unsendable(Exception):
    """Nothing was sent: no request can be made of it, whenever it is tried. Never repeats what it holds."""

    def __init__(self, error: Exception) -> None:
        self.reason = f"it cannot be sent as HTTP ({type(error).__name__}); check the channel's settings"
        super().__init__(self.reason)


@dataclass
class _Progress:
    has_begun: bool = False
    was_sent: bool = False
    events: list[str] = field(default_factory=list)

    def trace(self, name: str, _info: object) -> None:
        self.was_sent = self.was_sent or name == _BODY_SENT
        self.has_begun = self.has_begun or name == _HEAD_SENT


@lru_cache(maxsize=1)
def default_tls() -> ssl.SSLContext:
    """Return what checks certificates against the system's authorities; reading those takes a while."""
    return ssl.create_default_context()


def send(
    request: HttpRequest, policy: AddressPolicy, seconds: float, *, resolver: Resolver = resolve,
    tls: ssl.SSLContext | None = None,
) -> HttpAnswer:  # fmt: skip
    """Return the answer. ``seconds`` bounds everything together. Raises `Lost` and `Unsendable`."""
    connector = Connector(policy, time.monotonic() + seconds, resolver)
    progress = _Progress()
    pool = httpcore.ConnectionPool(
        ssl_context=tls or default_tls(),
        max_keepalive_connections=0,
        network_backend=GuardedBackend(connector),
    )
    try:
        with pool, pool.stream(
            request.method, request.url, headers=_headers(request), content=request.body,
            extensions={"trace": progress.trace},
        ) as answer:  # fmt: skip
            return HttpAnswer(answer.status, _kept(answer.headers), _start_of(answer))
    except NotConnected as error:
        raise Lost(str(error), was_sent=False) from None
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        if isinstance(error, httpcore.LocalProtocolError) and not progress.has_begun:
            raise Unsendable(error) from None
        raise Lost(_words(error, progress.was_sent), was_sent=progress.was_sent) from None
    except (ValueError, httpcore.UnsupportedProtocol) as error:
        raise Unsendable(error) from None


def _headers(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    """Return the headers with those that HTTP needs; nothing is asked to be packed."""
    own = {"Host": urlsplit(request.url).netloc.rpartition("@")[2], "User-Agent": USER_AGENT, "Accept": "*/*"}
    own |= {"Accept-Encoding": "identity", "Connection": "close", "Content-Length": str(len(request.body))}
    given = {name.lower() for name in request.headers}
    sent = [(name, value) for name, value in own.items() if name.lower() not in given]
    return [
        (name.encode("ascii"), value.encode("utf-8")) for name, value in (*sent, *request.headers.items())
    ]


def _kept(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1")[:MAX_HEADER_CHARACTERS]
        for name, value in headers[:MAX_HEADERS]
    }


def _start_of(answer: httpcore.Response) -> bytes:
    """Return the first bytes of the body. What is wrong with it does not change what the status said."""
    content = bytearray()
    try:
        for part in _parts(answer):
            content += part[: MAX_BODY_BYTES - len(content)]
            if len(content) >= MAX_BODY_BYTES:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError):
        pass
    return bytes(content)


def _parts(answer: httpcore.Response) -> Iterator[bytes]:
    yield from answer.iter_stream()


def _words(error: Exception, was_sent: bool) -> str:
    """Say what happened without what the receiver sent."""
    if isinstance(error, httpcore.TimeoutException):
        return "no answer came in time" if was_sent else "the request could not be sent in time"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not valid for this name: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "the connection could not be encrypted; does this port speak TLS?"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpcore.RemoteProtocolError):
        return "the answer is not HTTP, too large in its head, or was cut off"
    return "the connection was cut before an answer came"
