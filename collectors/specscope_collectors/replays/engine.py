"""Sending samples to an engine as token ids. One token is asked for, greedily; no text is sent or read."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

import httpx

from specscope_collectors.replays.errors import ReplayError

TIMEOUT_SECONDS = 120.0
MOST_ANSWER_BYTES = 512 << 20
MARK = "specscope-replay"
KEY_HELP = "give its key with SPECSCOPE_REPLAY_API_KEY"


def new_run() -> str:
    """Return a name of a run that nobody else has."""
    return secrets.token_hex(8)


class Engine:
    """An SGLang server."""

    def __init__(
        self, url: str, api_key: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(
            base_url=self.url, headers=headers, timeout=TIMEOUT_SECONDS, transport=transport
        )

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def info(self) -> dict[str, Any]:
        """Return what it says of itself. Raises ReplayError."""
        for path in ("/server_info", "/get_server_info"):
            answer = self._send("GET", path)
            if answer.status_code == httpx.codes.OK:
                return self._object(answer)
        raise ReplayError(f"{self.url} does not say what it is (status {answer.status_code}); is it SGLang?")

    def prefill(
        self, token_ids: list[int], request_id: str, more: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Let it read token ids and answer one token. Raises ReplayError."""
        body = {
            "input_ids": token_ids, "rid": request_id,
            "sampling_params": {"temperature": 0, "max_new_tokens": 1}, **(more or {}),
        }  # fmt: skip
        answer = self._send("POST", "/generate", json=body)
        if answer.status_code != httpx.codes.OK:
            text = "".join(c if c.isprintable() else " " for c in answer.text[:300])
            raise ReplayError(
                f"{self.url} refused a sample of {len(token_ids)} tokens: {answer.status_code} {text}"
            )
        return self._object(answer)

    def flush_cache(self) -> None:
        """Drop its prefix cache, so that all rows are computed. Raises ReplayError."""
        answer = self._send("POST", "/flush_cache")
        if answer.status_code != httpx.codes.OK:
            raise ReplayError(
                f"{self.url} did not flush its cache (status {answer.status_code}): is it busy?"
            )

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            with self._client.stream(method, path, **more) as response:
                content = bytearray()
                for part in response.iter_bytes():
                    content += part
                    if len(content) > MOST_ANSWER_BYTES:
                        raise ReplayError(
                            f"{self.url}: its answer is over {MOST_ANSWER_BYTES} bytes; use --tokens"
                        )
                found = httpx.Response(response.status_code, content=bytes(content))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ReplayError(f"{self.url} cannot be asked: {error or type(error).__name__}") from None
        if found.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise ReplayError(f"{self.url} refuses us (status {found.status_code}); {KEY_HELP}")
        return found

    def _object(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            found = answer.json()
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ReplayError(f"{self.url} answers something else than an object of JSON; is it SGLang?")
        return found
