"""Requests to a Specscope server with the standard library alone: bounded in bytes and in time, no redirects.

Only the pushing thread waits here, never the scheduler's.
"""

from __future__ import annotations

import gzip
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

TIMEOUT_SECONDS = 10.0
"""Of one read or write."""
MOST_SECONDS = 60.0
"""Of one answer, however it trickles."""
MOST_ANSWER_BYTES = 1 << 20
MOST_TOKEN_BYTES = 4_096
FINAL = (413, 422)
"""What is answered to a batch that will never be taken, if it is our server that says so."""
SAME_HOST = ("localhost", "127.0.0.1", "::1")
_STEP_BYTES = 1 << 14


class LinkError(Exception):
    """A request that did not do what it should; the text says why."""

    def __init__(
        self, reason: str, *, wait_seconds: float = 0.0, is_final: bool = False, is_unknown: bool = False
    ) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds
        """How long the server wants to be left alone."""
        self.is_final = is_final
        """Sending the same again would fail again."""
        self.is_unknown = is_unknown
        """The server may have done it all the same."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes to the host that it was given for, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Link:
    """One server, as the user named it."""

    def __init__(
        self, url: str, token_file: Path | None, *, timeout_seconds: float = TIMEOUT_SECONDS,
        most_seconds: float = MOST_SECONDS,
    ) -> None:  # fmt: skip
        self.url = url.rstrip("/")
        self._token_file = token_file
        self._timeout_seconds = timeout_seconds
        self._most_seconds = most_seconds
        self._opener = urllib.request.build_opener(_NoRedirects)

    @property
    def is_clear_text(self) -> bool:
        """Whether the token travels over a network unencrypted."""
        parts = urlsplit(self.url)
        return self._token_file is not None and parts.scheme == "http" and parts.hostname not in SAME_HOST

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return a JSON object of the API. Raises LinkError."""
        return self._ask(urllib.request.Request(self._place(path, query), headers=self._headers()))  # noqa: S310

    def post(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON object and return the one that is answered. Raises LinkError."""
        body = gzip.compress(json.dumps(content, allow_nan=False).encode(), compresslevel=1)
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **self._headers()}
        request = urllib.request.Request(self._place(path, {}), body, headers, method="POST")  # noqa: S310
        return self._ask(request)

    def _place(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self.url}/api/v1{path}" + (f"?{urlencode(query)}" if query else "")

    def _headers(self) -> dict[str, str]:
        """Read the token anew each time, so that it can be exchanged. Raises LinkError."""
        headers = {"Accept": "application/json", "User-Agent": "specscope-probe"}
        if self._token_file is None:
            return headers
        try:
            with self._token_file.open("rb") as file:
                token = file.read(MOST_TOKEN_BYTES).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LinkError(f"the token file {self._token_file} cannot be read: {error}") from None
        if not token or not token.isprintable():
            raise LinkError(f"the token file {self._token_file} holds no token")
        return headers | {"Authorization": f"Bearer {token}"}

    def _ask(self, request: urllib.request.Request) -> dict[str, Any]:
        deadline = time.monotonic() + self._most_seconds
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as answer:
                found = json.loads(self._read(answer, deadline))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error, deadline) from None
        except urllib.error.URLError as error:
            is_refused = isinstance(error.reason, ConnectionRefusedError)
            raise LinkError(f"{self.url}: {error.reason}", is_unknown=not is_refused) from None
        except (OSError, HTTPException, ValueError) as error:
            raise LinkError(f"{self.url}: {error}", is_unknown=True) from None
        if not isinstance(found, dict):
            raise LinkError(f"{self.url} answers with something else than a Specscope", is_unknown=True)
        return found

    def _read(self, answer: Any, deadline: float) -> bytes:
        content = bytearray()
        while part := answer.read1(_STEP_BYTES):
            content += part
            if len(content) > MOST_ANSWER_BYTES or time.monotonic() > deadline:
                raise OSError("its answer does not end")
        return bytes(content)

    def _refusal(self, error: urllib.error.HTTPError, deadline: float) -> LinkError:
        is_ours = error.headers.get_content_type() == "application/problem+json"
        try:
            detail = json.loads(self._read(error, deadline)).get("detail", "") if is_ours else ""
        except (OSError, HTTPException, ValueError, AttributeError):
            detail = ""
        wait = error.headers.get("Retry-After", "").strip()
        return LinkError(
            f"{self.url} answers {error.code}: {str(detail)[:300] or error.reason}",
            wait_seconds=min(float(wait[:6]), 3_600.0) if wait.isascii() and wait.isdigit() else 0.0,
            is_final=is_ours and error.code in FINAL,
            is_unknown=error.code >= 500,
        )
