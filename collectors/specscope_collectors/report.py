"""Report finished requests from a client's script: `Reporter(url, server).report(answer)`.

The script goes on at once: a thread of its own sends. It never raises into the script; what cannot be sent
is dropped and counted. Only counts, times, the id and labels leave this process: no prompt, no output.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from specscope_collectors.sources.requests import RefusedError, checked_labels, essentials
from specscope_collectors.sources.requests.answer import TIMES

QUEUE = 10_000
AT_ONCE = 500
SEND_EVERY_SECONDS = 1.0
MAX_PAUSE_SECONDS = 30.0
TIMEOUT_SECONDS = 10.0
CLOSE_SECONDS = 5.0
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which sending the same again may work; the server counts a request once."""


class Reporter:
    """Sends what an engine says of its requests to Specscope. Safe to use from several threads.

    ``url`` is Specscope's address, ``server`` the name of the inference server there, ``token`` is needed if
    Specscope has one. ``create`` makes the server if it is not known. Counts: ``sent`` reached the server and
    was stored (or was there already), ``refused`` did not add up, ``dropped`` was lost (queue full, or never
    sent); ``problem`` says what went wrong last. At the end of the script what is queued is still sent.
    """

    def __init__(
        self,
        url: str,
        server: str,
        token: str | None = None,
        *,
        create: bool = False,
        queue: int = QUEUE,
    ) -> None:
        self.sent = self.refused = self.dropped = 0
        self.problem = ""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        params = {"server": server, "create": "true" if create else "false"}
        self._client = httpx.Client(
            base_url=url.rstrip("/"), headers=headers, params=params, timeout=TIMEOUT_SECONDS
        )
        self._limit = queue
        self._queue: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        self._flushing = self._closed = False
        self._in_flight = 0
        self._thread = threading.Thread(target=self._run, name="specscope-reporter", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def report(self, answer: Any, labels: Mapping[str, str] | None = None) -> None:
        """Queue an answer of `/generate` or the OpenAI API (a list of them is taken too); never raises."""
        for each in answer if isinstance(answer, list) else [answer]:
            try:
                own = checked_labels(labels)
                items = [{**_timed(meta), "labels": own} for meta in essentials(each)]
            except RefusedError as error:
                self._count(refused=1, problem=str(error))
            except Exception as error:  # a script must not fail because of its telemetry
                self._count(dropped=1, problem=f"{type(error).__name__}: {error}")
            else:
                self._enqueue(items)

    def _enqueue(self, items: list[dict[str, Any]]) -> None:
        with self._changed:
            room = self._room()
            self._queue.extend(items[:room])
            self.dropped += len(items[room:])
            if len(self._queue) >= AT_ONCE:
                self._changed.notify_all()

    def _room(self) -> int:
        return 0 if self._closed else max(self._limit - len(self._queue), 0)

    def flush(self, timeout_seconds: float = TIMEOUT_SECONDS) -> bool:
        """Send what is queued now; False if it was not all sent in time."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            while self._queue or self._in_flight:
                if self._closed or not self._changed.wait(max(deadline - time.monotonic(), 0)):
                    return False
        return True

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Send what is queued, then stop; what could not be sent is counted as dropped."""
        if self._closed:
            return
        self.flush(timeout_seconds)
        with self._changed:
            self._closed = True
            self.dropped += len(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        self._client.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        """Return the reporter, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _run(self) -> None:
        pause_seconds = 0.0
        while (part := self._take(pause_seconds)) is not None:
            is_done = not part or self._send(part)
            pause_seconds = 0.0 if is_done else min(max(2 * pause_seconds, 0.5), MAX_PAUSE_SECONDS)
            with self._changed:
                if not is_done:
                    self._give_back(part)
                self._in_flight = 0
                self._changed.notify_all()

    def _take(self, pause_seconds: float) -> list[dict[str, Any]] | None:
        """Wait for enough, a flush, or the end of the wait; return what to send, None at the end.

        ``pause_seconds`` after a failure: then nothing but the end shortens the wait.
        """
        with self._changed:
            if pause_seconds:
                self._changed.wait_for(lambda: self._closed, pause_seconds)
            else:
                self._changed.wait_for(self._is_due, SEND_EVERY_SECONDS)
            if self._closed:
                return None
            part = [self._queue.popleft() for _ in range(min(AT_ONCE, len(self._queue)))]
            self._flushing = self._flushing and bool(self._queue)
            self._in_flight = len(part)
            return part

    def _is_due(self) -> bool:
        return self._closed or self._flushing or len(self._queue) >= AT_ONCE

    def _give_back(self, part: list[dict[str, Any]]) -> None:
        """Queue again what was not sent; what there is no room for is dropped, the oldest first."""
        kept = part[max(len(part) - self._room(), 0) :]
        self.dropped += len(part) - len(kept)
        self._queue.extendleft(reversed(kept))

    def _send(self, part: list[dict[str, Any]]) -> bool:
        """Send; False if the same may be sent again later."""
        try:
            answer = self._client.post("/api/v1/requests", json=part)
            if answer.status_code == httpx.codes.OK:
                receipt = answer.json()
                refused = receipt["refused"]
                self._count(
                    sent=receipt["accepted"] + receipt["duplicates"],
                    refused=receipt["refused_total"],
                    problem=refused[0]["reason"] if refused else "",
                )
                return True
            problem = f"HTTP {answer.status_code}: {answer.text[:300]}"
        except Exception as error:  # whatever happens here, the script goes on
            self._count(problem=f"{type(error).__name__}: {error}")
            return False
        may_work_later = answer.status_code in RETRIED
        self._count(dropped=0 if may_work_later else len(part), problem=problem)
        return not may_work_later

    def _count(self, sent: int = 0, refused: int = 0, dropped: int = 0, problem: str = "") -> None:
        with self._changed:
            self.sent += sent
            self.refused += refused
            self.dropped += dropped
            self.problem = problem or self.problem


def _timed(meta: dict[str, Any]) -> dict[str, Any]:
    """Return what an engine said with a time: now, if it said none (it may be sent much later)."""
    return (
        meta
        if any(name in meta for name in TIMES if name != "e2e_latency")
        else {**meta, "created": time.time()}
    )
