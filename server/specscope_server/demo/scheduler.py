"""Plays one launch: requests arrive, are prefilled, decoded step by step, and finish. Seeded.

Time is milliseconds since the demo began, told by the caller. A step that has begun is kept until its end, so
the result depends on the seed and the moment only, not on how often `Scheduler.advance` was called before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from specscope_server.demo.model import REST_MS
from specscope_server.demo.story import MAX_RATE, Launch, Story
from specscope_server.demo.telemetry import AT_ONCE, STREAMING, Telemetry
from specscope_server.demo.traffic import BENCHMARK, draw

MAX_RUNNING = 48
PREFILL_BASE_MS, PREFILL_TOKEN_MS = 13.0, 0.045
PREFILL_LIMIT_TOKENS = 16384
CHUNK_TOKENS = 50
"""A request that does not stream sends a chunk when its length is a multiple of this, or at its end."""
BENCHMARK_PROMPT, BENCHMARK_OUTPUT = 1024, 512


@dataclass(slots=True)
class Request:
    """One request; times in ms since the demo began."""

    arrived_ms: float
    prompt_tokens: int
    cached_tokens: int
    max_tokens: int
    streams: bool
    tenant: str = BENCHMARK
    strain: float = 1.0
    histogram: list[int] = field(default_factory=list)
    """h[d] = cycles that accepted d drafts, those past the request's end included."""
    emitted: int = 0
    verify_calls: int = 0
    accepted: int = 0
    """Accepted drafts that were delivered."""
    prefilled_ms: float = 0.0
    chunk_ms: float | None = None
    chunk_emitted: int = 0

    @property
    def stream_label(self) -> str:
        """Return the value of SGLang's ``is_streaming`` label."""
        return STREAMING if self.streams else AT_ONCE


@dataclass(frozen=True, slots=True)
class Step:
    """What the scheduler is doing until ``end_ms``; ``commit`` applies it."""

    end_ms: float
    commit: Callable[[], None]


@dataclass(slots=True)
class Scheduler:
    """One launch of the engine, from ``launch.up_ms`` on."""

    story: Story
    launch: Launch
    telemetry: Telemetry
    seed: str
    running: list[Request] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)
    on_finish: Callable[[Request], None] | None = None
    now_ms: float = field(init=False)
    _steps: random.Random = field(init=False)
    _arrivals: random.Random = field(init=False)
    _next_arrival_ms: float = field(init=False)
    _step: Step | None = None

    def __post_init__(self) -> None:
        """Seed the two random streams: one for steps, one for arrivals."""
        self.now_ms = self.launch.up_ms
        self._steps = random.Random(f"{self.seed}/{self.launch.index}/steps")  # noqa: S311
        self._arrivals = random.Random(f"{self.seed}/{self.launch.index}/arrivals")  # noqa: S311
        self._next_arrival_ms = self.now_ms + self._gap_ms()

    def advance(self, until_ms: float) -> None:
        """Apply every step that ends at or before ``until_ms``."""
        until_ms = min(until_ms, self.launch.down_ms)
        step = self._step or self._begin()
        while step.end_ms <= until_ms:
            self.now_ms = step.end_ms
            step.commit()
            step = self._begin()
        self._step = step

    def _begin(self) -> Step:
        self._receive()
        if self.waiting and len(self.running) < MAX_RUNNING:
            return self._begin_prefill()
        if self.running:
            return self._begin_decode()
        return self._begin_idle()

    def _gap_ms(self) -> float:
        return self._arrivals.expovariate(MAX_RATE) * 1000

    def _receive(self) -> None:
        """Take in what has arrived: Poisson candidates at `MAX_RATE`, thinned to the rate of the moment."""
        while self._next_arrival_ms <= self.now_ms:
            at_ms = self._next_arrival_ms
            request = self._draw_request(at_ms)
            if self._arrivals.random() < self.story.rate_at(at_ms) / MAX_RATE:
                self.waiting.append(request)
            self._next_arrival_ms += self._gap_ms()
        if self.story.benchmark_at(self.now_ms) and not self.running and not self.waiting:
            self.waiting.append(
                Request(self.now_ms, BENCHMARK_PROMPT, BENCHMARK_PROMPT - 1, BENCHMARK_OUTPUT, streams=True)
            )

    def _draw_request(self, at_ms: float) -> Request:
        rng = self._arrivals
        asked = draw(rng)
        cached = int((asked.prompt_tokens - 1) * rng.betavariate(1.2, 1.8))
        streams = rng.random() < 0.7
        return Request(
            at_ms, asked.prompt_tokens, cached, asked.output_tokens, streams, asked.tenant, asked.strain
        )

    def _begin_prefill(self) -> Step:
        batch: list[Request] = []
        computed = 0
        while self.waiting and len(self.running) + len(batch) < MAX_RUNNING:
            computed += self.waiting[0].prompt_tokens - self.waiting[0].cached_tokens
            if batch and computed > PREFILL_LIMIT_TOKENS:
                break
            batch.append(self.waiting.pop(0))
            self.telemetry.queue.observe((self.now_ms - batch[-1].arrived_ms) / 1000)
        computed = sum(request.prompt_tokens - request.cached_tokens for request in batch)
        device_ms = PREFILL_BASE_MS + PREFILL_TOKEN_MS * computed
        end_ms = self.now_ms + device_ms + REST_MS
        return Step(end_ms, lambda: self._prefilled(batch, computed, device_ms))

    def _prefilled(self, batch: list[Request], computed: int, device_ms: float) -> None:
        cached = sum(request.cached_tokens for request in batch)
        self.telemetry.prefill(computed, cached, device_ms, REST_MS, len(batch))
        for request in batch:
            request.emitted, request.prefilled_ms = 1, self.now_ms
            self.telemetry.prefill_stage.observe((device_ms + REST_MS) / 1000)
            self._send_chunk(request)
        self.running += batch
        self._publish_batch()

    def _begin_decode(self) -> Step:
        model = self.launch.plan.model
        cycle = model.sample_cycle(self._steps, len(self.running))
        accepted = [model.sample_accepted(self._steps, request.strain) for request in self.running]

        def commit() -> None:
            self.telemetry.decode_step(cycle, accepted)
            self._emit(accepted)
            if self.telemetry.tick(self.now_ms):
                self._publish_batch()
            self.running = [request for request in self.running if request.emitted < request.max_tokens]

        return Step(self.now_ms + cycle.total, commit)

    def _emit(self, accepted: list[int]) -> None:
        for request, drafts in zip(self.running, accepted, strict=True):
            delivered = min(1 + drafts, request.max_tokens - request.emitted)
            request.emitted += delivered
            if self.launch.plan.model.num_steps:
                request.histogram = request.histogram or [0] * self.launch.plan.model.num_draft_tokens
                request.histogram[drafts] += 1
                request.verify_calls += 1
                request.accepted += delivered - 1
            self._send_chunk(request)
            if request.emitted >= request.max_tokens:
                self._finish(request)

    def _send_chunk(self, request: Request) -> None:
        """Send what is new, if the engine would send now, and observe the latency that it would observe."""
        finished = request.emitted >= request.max_tokens
        if not (request.streams or finished or request.emitted % CHUNK_TOKENS == 0):
            return
        if request.chunk_ms is None:
            waited = (self.now_ms - request.arrived_ms) / 1000
            self.telemetry.first_token[request.stream_label].observe(waited)
        else:
            tokens = request.emitted - request.chunk_emitted
            self.telemetry.inter_token.observe((self.now_ms - request.chunk_ms) / 1000 / tokens, tokens)
        request.chunk_ms, request.chunk_emitted = self.now_ms, request.emitted

    def _finish(self, request: Request) -> None:
        telemetry, label = self.telemetry, request.stream_label
        telemetry.requests[label] += 1
        telemetry.prompt_tokens[label] += request.prompt_tokens
        telemetry.generation_tokens[label] += request.emitted
        telemetry.cached_tokens += request.cached_tokens
        telemetry.verify_calls += request.verify_calls
        telemetry.accepted_delivered += request.accepted
        telemetry.end_to_end[label].observe((self.now_ms - request.arrived_ms) / 1000)
        decoding = (self.now_ms - request.prefilled_ms) / 1000
        telemetry.per_token[label].observe(decoding / (request.emitted - 1))
        if self.on_finish:
            self.on_finish(request)

    def _publish_batch(self) -> None:
        held = sum(request.prompt_tokens + request.emitted for request in self.running)
        self.telemetry.batch_gauges(len(self.running), len(self.waiting), held)

    def _begin_idle(self) -> Step:
        """Wait for the next candidate arrival; a benchmark user is noticed within a second."""
        began_ms = self.now_ms
        self.telemetry.idle(began_ms, 0.0)
        end_ms = min(self._next_arrival_ms, began_ms + 1000)
        return Step(end_ms, lambda: self.telemetry.idle(self.now_ms, self.now_ms - began_ms))
