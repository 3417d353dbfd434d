"""A scriptable engine behind a real HTTP server, and a sink that keeps what it is given."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from tests.collectors.fetch.servers import Answering, Request, Server, always, reset, response, serving
from tests.collectors.info.bodies import captured, restarted

from specscope_collectors.config import CollectorOptions, parse_target
from specscope_collectors.fetch import make_client
from specscope_collectors.observations import (
    Batch,
    Event,
    HealthState,
    Increment,
    Launch,
    Level,
    Resume,
    SourceHealth,
)
from specscope_collectors.target import TargetCollector

TOKENIZER = 'engine_type="unified",model_name="{model}"'
PATIENT_SECONDS = 60.0
"""How long an answer may take that is to come: a busy machine is no finding."""
RANK = TOKENIZER + ',moe_ep_rank="0",pp_rank="0",tp_rank="{rank}"'


@dataclass
class Engine:
    """State of an SGLang 0.5.23; `metrics`, `info` and `loads` answer from it, unless overridden."""

    tokens: float = 1000
    verify_calls: float = 400
    requests: float = 10
    accept_length: float = 2.5
    model: str = "models/tiny-target"
    info: dict[str, Any] = field(default_factory=lambda: captured("0.5.23"))
    overrides: dict[str, Answering] = field(default_factory=dict)
    extra: str = ""

    def serve(self, tokens: float = 100, verify_calls: float = 40) -> None:
        """Finish a request."""
        self.tokens += tokens
        self.verify_calls += verify_calls
        self.requests += 1

    def restart(self, tokens: float = 0, verify_calls: float = 0) -> None:
        """Start anew with the same flags."""
        self.tokens, self.verify_calls, self.requests = tokens, verify_calls, 0
        self.info = restarted(self.info)

    def metrics(self) -> bytes:
        own, rank = TOKENIZER.format(model=self.model), RANK.format(model=self.model, rank=0)
        return (
            "# TYPE sglang:generation_tokens_total counter\n"
            f"sglang:generation_tokens_total{{{own}}} {self.tokens}\n"
            f"sglang:spec_verify_calls_total{{{own}}} {self.verify_calls}\n"
            f"sglang:num_requests_total{{{own}}} {self.requests}\n"
            f"sglang:num_running_reqs{{{rank}}} 2\n"
            f"sglang:spec_accept_length{{{rank}}} {self.accept_length}\n"
            f"sglang:spec_num_steps{{{rank}}} 3\n" + self.extra
        ).encode()

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        answering = self.overrides.get(request.path) or self.overrides.get("*") or self._normal(request.path)
        await answering(request, writer)

    def _normal(self, path: str) -> Answering:
        if path == "/metrics":
            return always(response(self.metrics()))
        if path == "/server_info":
            return always(response(json.dumps(self.info).encode(), content_type="application/json"))
        return always(response(b"{}", "404 Not Found"))

    def break_down(self) -> None:
        """Cut every connection."""
        self.overrides["*"] = reset

    def recover(self) -> None:
        self.overrides.clear()


class StoreDownError(Exception):
    """The sink cannot store."""


@dataclass
class MemorySink:
    """Keeps batches as the store does: a batch whose sequence was applied before changes nothing."""

    batches: list[Batch] = field(default_factory=list)
    resumes: dict[str, Resume] = field(default_factory=dict)
    is_down: bool = False
    is_full: bool = False
    """It can be read, but not written."""
    turned_away: int = 0
    """Calls while it was down."""
    loses_the_answer: bool = False
    """The batch is stored, but the caller is told that it failed."""

    def resume(self, collector_id: str) -> Resume:
        self._raise_when_down()
        return self.resumes.get(collector_id, Resume())

    def apply(self, batch: Batch) -> bool:
        self._raise_when_down()
        if self.is_full:
            raise StoreDownError("full")
        before = self.resume(batch.collector_id)
        is_new = batch.sequence > before.sequence
        if is_new:
            self.batches.append(batch)
            self.resumes[batch.collector_id] = Resume(
                sequence=batch.sequence, checkpoint=batch.checkpoint, launch_key=batch.launch_key
            )
        if self.loses_the_answer:
            raise StoreDownError("stored, but the answer was lost")
        return is_new

    def _raise_when_down(self) -> None:
        if self.is_down:
            self.turned_away += 1
            raise StoreDownError("down")

    def all(self, kind: type) -> list[Any]:
        return [each for batch in self.batches for each in batch.observations if isinstance(each, kind)]

    def total(self, metric: str, launch_key: str | None = None) -> float:
        return sum(
            each.value
            for batch in self.batches
            if launch_key is None or batch.launch_key == launch_key
            for each in batch.observations
            if isinstance(each, Increment) and each.metric == metric
        )

    def all_increments(self, metric: str) -> list[Increment]:
        return [each for each in self.all(Increment) if each.metric == metric]

    def launches(self) -> list[Launch]:
        return self.all(Launch)

    def events(self) -> list[str]:
        return [event.kind for event in self.all(Event)]

    def health(self, source: str = "sglang_metrics") -> SourceHealth:
        found: list[SourceHealth] = [each for each in self.all(SourceHealth) if each.source == source]
        return found[-1]

    def states(self, source: str = "sglang_metrics") -> list[HealthState]:
        return [each.state for each in self.all(SourceHealth) if each.source == source]

    def levels(self, at: int = -1) -> dict[str, float]:
        return {each.metric: each.value for each in self.batches[at].observations if isinstance(each, Level)}

    def increments(self, at: int = -1) -> dict[str, Increment]:
        return {each.metric: each for each in self.batches[at].observations if isinstance(each, Increment)}


class FakeClock:
    """Epoch milliseconds that move only when told."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self.now_ms = now_ms
        self.elapsed_seconds = 0.0

    def __call__(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.elapsed_seconds

    def advance(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)
        self.elapsed_seconds += abs(seconds)


class Bench:
    """One engine, one collector, one sink; every `scrape` is five seconds after the last."""

    def __init__(self, server: Server, engine: Engine, options: CollectorOptions) -> None:
        self.engine = engine
        self.sink = MemorySink()
        self.clock = FakeClock()
        self.paths = server.paths
        self._target = parse_target(server.url)
        self._options = options
        self._loop = asyncio.Runner()
        self._clients: list[httpx.AsyncClient] = []
        self._open()

    def scrape(self, times: int = 1, seconds: float = 5) -> None:
        for _ in range(times):
            self.clock.advance(seconds)
            self._loop.run(self.collector.scrape())

    def give_up_after(self, seconds: float) -> None:
        """Wait only so long for ``/metrics`` and all else from now on."""
        reader = self.collector._reader
        reader._options = replace(reader._options, scrape_timeout_seconds=seconds)
        self.give_up_info_after(seconds)

    def give_up_info_after(self, seconds: float) -> None:
        """Wait only so long for ``/server_info`` and the like from now on."""
        reader = self.collector._reader
        reader._small = replace(reader._small, scrape_timeout_seconds=seconds)

    def kill(self) -> None:
        """Lose everything that only the collector's process knew."""
        self._loop.run(self._client.aclose())
        self._open()

    def join(self) -> TargetCollector:
        """Start another process that watches the same; return the collector of the one before."""
        former = self.collector
        self._open()
        return former

    def close(self) -> None:
        for client in self._clients:
            self._loop.run(client.aclose())
        self._loop.close()

    def _open(self) -> None:
        self._client = make_client(self._options, with_tls=False)
        self._clients.append(self._client)
        self.collector = TargetCollector(
            self._target,
            self.sink,
            self._options,
            self._client,
            clock=self.clock,
            monotonic=self.clock.monotonic,
        )


@contextlib.contextmanager
def bench(engine: Engine | None = None, **options: Any) -> Iterator[Bench]:
    """Run a collector against ``engine``."""
    own = engine or Engine()
    settings: dict[str, Any] = {"scrape_timeout_seconds": PATIENT_SECONDS} | options
    with serving(own) as server:
        made = Bench(server, own, CollectorOptions(**settings))
        try:
            yield made
        finally:
            made.close()
