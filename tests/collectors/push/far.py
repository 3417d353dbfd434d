"""The far side of a push as the test wants it, and a pusher whose clocks the test sets."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import zstandard
from tests.collectors.spool.spools import COLLECTOR, Times, make_batch

from specscope_collectors.observations import Batch, SourceHealth
from specscope_collectors.push import Pusher
from specscope_collectors.push_options import PushOptions
from specscope_collectors.spool import Spool, SpoolLimits
from specscope_collectors.spool_sink import SpoolSink

Answer = Callable[[httpx.Request], httpx.Response]


class Far:
    """A server that applies as the real one does, unless it was told to answer something else."""

    def __init__(self) -> None:
        self.bodies: list[list[Batch]] = []
        self.requests: list[httpx.Request] = []
        self.answers: list[Answer] = []
        self.last: dict[str, int] = {}
        self.also: list[str] = []
        self.refused: dict[str, int] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.method == "GET":
            name = request.url.params["collector_id"]
            return httpx.Response(200, json={"collector_id": name, "sequence": self.last.get(name, 0)})
        if self.answers:
            return self.answers.pop(0)(request)
        return self.apply(request)

    def apply(self, request: httpx.Request) -> httpx.Response:
        batches = unpacked(request)
        self.bodies.append(batches)
        items: list[dict[str, Any]] = []
        for batch in batches:
            last = self.last.get(batch.collector_id, 0)
            is_new = batch.sequence > last
            self.last[batch.collector_id] = max(last, batch.sequence)
            items.append({
                "collector_id": batch.collector_id, "sequence": batch.sequence,
                "outcome": "applied" if is_new else "repeated", "applied_up_to": None if is_new else last,
                "also_collected_by": self.also, "refused": self.refused,
            })  # fmt: skip
        applied = sum(item["outcome"] == "applied" for item in items)
        receipt = {"applied": applied, "repeated": len(items) - applied, "batches": items}
        return httpx.Response(200, json=receipt)

    def stored(self, collector: str = "watch:a") -> list[int]:
        """Return the sequences that were applied, in order."""
        seen: list[int] = []
        for batch in (batch for body in self.bodies for batch in body):
            if batch.collector_id.startswith(collector + "#") and batch.sequence not in seen:
                seen.append(batch.sequence)
        return seen

    def health(self) -> SourceHealth:
        """Return the newest report of pushing."""
        found = [
            record
            for body in self.bodies
            for batch in body
            for record in batch.observations
            if isinstance(record, SourceHealth)
        ]
        return found[-1]


def unpacked(request: httpx.Request) -> list[Batch]:
    if request.headers["content-encoding"] == "gzip":
        content = zlib.decompress(request.content, 31)
    else:
        reader = zstandard.ZstdDecompressor().stream_reader(request.content, read_across_frames=True)
        content = reader.read()
    return msgspec.msgpack.decode(content, type=list[Batch])


def says(status: int, *, place: int | None = None, **headers: str) -> Answer:
    """Return an answer with this status, perhaps about one batch."""
    problem: dict[str, Any] = {"detail": f"status {status}"}
    if place is not None:
        problem["errors"] = [{"location": f"batches.{place}", "reason": "r", "input": "i"}]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named["content-type"] = "application/problem+json"
    return lambda _: httpx.Response(status, json=problem, headers=named)


def proxy_says(status: int) -> Answer:
    """Return an answer of something that stands before the server."""
    return lambda _: httpx.Response(status, html=f"<html><h1>{status}</h1></html>")


class Bench:
    """A pusher whose clock the test sets."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.times = Times(seconds=1.0)
        self.far = Far()
        self.spool = Spool(folder, SpoolLimits(), self.times.wall, self.times.monotonic)
        self.sink = SpoolSink(self.spool, COLLECTOR, self.times.wall)
        chosen = PushOptions(server="http://127.0.0.1:8200", **options)
        client = httpx.Client(transport=httpx.MockTransport(self.far))
        self.pusher = Pusher(
            self.spool, self.sink, chosen, COLLECTOR, self.times.wall, self.times.monotonic, client
        )

    def fill(self, *numbers: int, **fields: Any) -> None:
        for number in numbers:
            assert self.sink.apply(make_batch(number, **fields))

    def drain(self, most: int = 50) -> list[float]:
        """Step, with the clock going on as asked, until nothing waits; return the waits."""
        waits: list[float] = []
        while self.spool.count and len(waits) < most:
            waits.append(self.pusher.step())
            self.times.seconds += waits[-1]
        return waits
