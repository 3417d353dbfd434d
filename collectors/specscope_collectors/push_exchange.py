"""One request to the server and its answer: bounded in bytes and in time, whatever answers."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from specscope_collectors.clock import Monotonic

MOST_ANSWER_BYTES = 8 * 1024 * 1024
"""A receipt for the most batches that fit into one request is far below."""
KEPT_HEADERS = ("content-type", "retry-after", "location")


class AnswerError(httpx.HTTPError):
    """The answer does not end."""


def exchange(
    client: httpx.Client,
    request: httpx.Request,
    monotonic: Monotonic,
    most_seconds: float,
) -> httpx.Response:
    """Return the whole answer. Raises `httpx.HTTPError`.

    The client's own time limit is one for each piece: who sends a byte now and then never exceeds it.
    """
    deadline = monotonic() + most_seconds
    response = client.send(request, stream=True)
    try:
        content = bytearray()
        for part in response.iter_bytes():
            content += part
            if len(content) > MOST_ANSWER_BYTES:
                raise AnswerError(f"its answer is over {MOST_ANSWER_BYTES} bytes; is it a Specscope?")
            if monotonic() > deadline:
                raise AnswerError(f"its answer did not end within {most_seconds:g} s")
        return httpx.Response(response.status_code, headers=_kept(response.headers), content=bytes(content))
    finally:
        response.close()


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in KEPT_HEADERS if name in headers}
