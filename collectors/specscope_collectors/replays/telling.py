"""Tell Specscope of a replay: one event, under the launch of the server that is being watched."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec

from specscope_collectors.observations import Batch, Event, Target
from specscope_collectors.replays.errors import ReplayError

TIMEOUT_SECONDS = 30.0


def send_event(
    url: str, server: str, token: str | None, event: Event, transport: httpx.BaseTransport | None = None
) -> None:
    """Send it. Raises ReplayError."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(
        base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT_SECONDS, transport=transport
    ) as client:
        launch = _asked(client, "GET", "/api/v1/ingest/launch", params={"server": server})
        collector = f"replay:{server}"[:200]
        position = _asked(client, "GET", "/api/v1/ingest", params={"collector_id": collector})
        batch = Batch(
            collector_id=collector, sequence=int(position["sequence"]) + 1,
            target=Target(name=launch["server"], base_url=launch["base_url"]),
            launch_key=launch["launch_key"], observations=(event,),
        )  # fmt: skip
        content = {"content": msgspec.json.encode(batch), "headers": {"content-type": "application/json"}}
        _asked(client, "POST", "/api/v1/ingest", **content)


def _asked(client: httpx.Client, method: str, path: str, **more: Any) -> Any:
    try:
        answer = client.request(method, path, **more)
        if answer.is_success:
            return answer.json()
        detail = answer.json().get("detail", "")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError) as error:
        raise ReplayError(f"Specscope at {client.base_url} cannot be told of it: {error}") from None
    words = "".join(c if c.isprintable() else " " for c in str(detail)[:300])
    raise ReplayError(f"Specscope at {client.base_url} does not take it ({answer.status_code}): {words}")
