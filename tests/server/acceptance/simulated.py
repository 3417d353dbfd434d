"""An engine whose truth is known: cycles, requests and counters as SGLang keeps them, seen at scrapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from tests.server.seed import SCRAPE_MS, TOKENIZER, growth, level, rank_labels

from specscope_collectors.observations import Observation

CYCLE_MS = 25
LOG_INTERVAL = 40
"""Cycles of a scheduler in one of its log windows."""


@dataclass
class Truth:
    """What really happened."""

    cycles: int = 0
    accepted: int = 0
    """Of finished requests."""
    decode_cycles: int = 0
    """Request-cycles of all requests, finished or not."""
    decode_accepted: int = 0
    output_tokens: int = 0
    overshoot: int = 0
    """Accepted drafts past a request's stop, which are never output."""
    requests: int = 0
    busy_ms: int = 0

    @property
    def length(self) -> float:
        return 1 + self.accepted / self.cycles

    @property
    def decode_length(self) -> float:
        return 1 + self.decode_accepted / self.decode_cycles


@dataclass
class Stream:
    """One running request."""

    wanted: int
    output: int = 1
    cycles: int = 0
    accepted: int = 0


@dataclass
class Scheduler:
    """One data-parallel rank: a batch of requests, a chance per draft, gauges of its last log window."""

    seed: int
    chance: float = 0.6
    steps: int = 3
    width: int = 4
    version: str = "0.5.15"
    mean_tokens: int = 120
    truth: Truth = field(default_factory=Truth)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.batch: list[Stream] = []
        self.window = [0, 0, 0]  # decode steps, request-cycles, accepted
        self.gauges: dict[str, float] = {}
        self.counted = dict.fromkeys(("calls", "tokens", "finished", "decoded"), 0)

    def run(self, milliseconds: int, load: int) -> None:
        """Let time pass with ``load`` requests in the batch; 0 = nothing arrives, what runs is finished."""
        for _ in range(milliseconds // CYCLE_MS):
            while len(self.batch) < load:
                self.batch.append(Stream(2 + int(self.random.exponential(self.mean_tokens))))
            if self.batch:
                self._cycle()
        if not self.batch:
            self.gauges |= {"running": 0, "throughput": 0}

    def _cycle(self) -> None:
        misses = self.random.random((len(self.batch), self.steps)) > self.chance
        drafts = np.where(misses.any(axis=1), misses.argmax(axis=1), self.steps)
        self.truth.busy_ms += CYCLE_MS
        self.window[0] += 1
        for stream, kept in zip(self.batch, drafts.tolist(), strict=True):
            self._advance(stream, kept)
        self.batch = [stream for stream in self.batch if stream.output < stream.wanted]
        if self.window[0] == LOG_INTERVAL:
            self._log()

    def _advance(self, stream: Stream, kept: int) -> None:
        stream.cycles += 1
        stream.accepted += kept
        self.window[1] += 1
        self.window[2] += kept
        self.truth.decode_cycles += 1
        self.truth.decode_accepted += kept
        self.counted["decoded"] += kept + 1
        over = max(stream.output + kept + 1 - stream.wanted, 0)
        stream.output += kept + 1 - over
        if stream.output == stream.wanted:
            self._finish(stream, over)

    def _finish(self, stream: Stream, over: int) -> None:
        truth = self.truth
        truth.cycles += stream.cycles
        truth.accepted += stream.accepted
        truth.overshoot += over
        truth.output_tokens += stream.output
        truth.requests += 1
        self.counted["calls"] += stream.cycles
        self.counted["tokens"] += stream.output
        self.counted["finished"] += 1

    def _log(self) -> None:
        _, cycles, accepted = self.window
        length = 1 + accepted / cycles
        self.gauges |= {"tau": length, "running": len(self.batch), "queued": 0}
        self.gauges["throughput"] = (cycles + accepted) / (LOG_INTERVAL * CYCLE_MS / 1_000)
        if self.version.startswith("0.5.8"):
            self.gauges["rate"] = length / self.width
        elif self.version not in ("0.4.6", "0.5.2"):
            self.gauges["rate"] = (length - 1) / (self.width - 1)
        self.window = [0, 0, 0]

    def read(self) -> dict[str, int]:
        """Return the growth of the counters since the last call."""
        grown, self.counted = self.counted, dict.fromkeys(self.counted, 0)
        return grown


NAMES = {
    "tau": "spec.accept_length", "rate": "spec.engine_accept_rate", "running": "requests.running",
    "queued": "requests.queued", "throughput": "throughput.generated",
}  # fmt: skip
COUNTED = {"calls": "spec.verify_calls", "tokens": "tokens.generated", "finished": "requests.finished"}


def observe(
    schedulers: list[Scheduler], time_ms: int, *, counters: bool = True, mirrors: int = 1
) -> Iterator[Observation]:
    """Yield what one scrape shows. ``mirrors``: tensor-parallel ranks of each group that report the same."""
    total = dict.fromkeys(COUNTED, 0)
    for dp, scheduler in enumerate(schedulers):
        grown = scheduler.read()
        total = {name: count + grown[name] for name, count in total.items()}
        for tp in range(dp * mirrors, (dp + 1) * mirrors):
            labels = rank_labels(dp=dp, tp=tp)
            for name, value in scheduler.gauges.items():
                yield level(NAMES[name], value, time_ms, dp=dp, tp=tp)
            if counters:
                yield growth("tokens.decoded", grown["decoded"], time_ms, labels)
    if counters:
        for name, metric in COUNTED.items():
            yield growth(metric, total[name], time_ms, TOKENIZER)


def scrapes(
    schedulers: list[Scheduler], start_ms: int, loads: list[int], *, counters: bool = True, mirrors: int = 1
) -> Iterator[Observation]:
    """Yield one scrape after another; ``loads``: requests in each batch before each scrape."""
    for index, load in enumerate(loads, start=1):
        for scheduler in schedulers:
            scheduler.run(SCRAPE_MS, load)
        yield from observe(schedulers, start_ms + index * SCRAPE_MS, counters=counters, mirrors=mirrors)
