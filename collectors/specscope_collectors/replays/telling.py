"""Tell Specscope of a replay: one event, under the launch of the server that is being watched."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec

from specscope_collectors.observations import Batch, Event, Target
from specscope_collectors.replays.errors import ReplayError

TIMEOUT_SECONDS = 30.0
_T = TypeVar("_T")


class _Launch(msgspec.Struct):
    server: str
    base_url: str
    launch_key: str


class _Position(msgspec.Struct):
    sequence: int


def send_event(
    url: str, server: str, token: str | None, event: Event, transport: httpx.BaseTransport | None = None
) -> None:
    """Send it. Raises ReplayError."""
    with _client(url, token, transport) as client:
        launch, position = _launch(client, server), _position(client, server)
        batch = Batch(
            collector_id=_collector(server), sequence=position.sequence + 1,
            target=Target(name=launch.server, base_url=launch.base_url),
            launch_key=launch.launch_key, observations=(event,),
        )  # fmt: skip
        content = {"content": msgspec.json.encode(batch), "headers": {"content-type": "application/json"}}
        _asked(client, "POST", "/api/v1/ingest", **content)


def check_receiver(
    url: str, server: str, token: str | None, transport: httpx.BaseTransport | None = None
) -> None:
    """See that a Specscope answers there and watches the server, before anything is done that it is to be
    told of. Raises ReplayError.
    """
    with _client(url, token, transport) as client:
        _launch(client, server)
        _position(client, server)


def _client(url: str, token: str | None, transport: httpx.BaseTransport | None) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(
        base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT_SECONDS, transport=transport
    )


def _collector(server: str) -> str:
    return f"replay:{server}"[:200]


def _launch(client: httpx.Client, server: str) -> _Launch:
    return _read(client, "/api/v1/ingest/launch", {"server": server}, _Launch)


def _position(client: httpx.Client, server: str) -> _Position:
    return _read(client, "/api/v1/ingest", {"collector_id": _collector(server)}, _Position)


def _read(client: httpx.Client, path: str, query: dict[str, str], kind: type[_T]) -> _T:
    answer = _asked(client, "GET", path, params=query)
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError:
        shown = _plain(answer, 100)
        raise ReplayError(
            f"{client.base_url} is no Specscope: it answers {shown} to {path}; give the address of one as "
            "--specscope"
        ) from None


def _plain(said: object, most: int) -> str:
    return "".join(c if c.isprintable() else " " for c in str(said)[:most])


def _asked(client: httpx.Client, method: str, path: str, **more: Any) -> Any:
    try:
        answer = client.request(method, path, **more)
        if answer.is_success:
            return answer.json()
        detail = answer.json().get("detail", "")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError, RecursionError) as error:
        raise ReplayError(f"Specscope at {client.base_url} cannot be told of it: {error}") from None
    words = _plain(detail, 300)
    raise ReplayError(f"Specscope at {client.base_url} does not take it ({answer.status_code}): {words}")
