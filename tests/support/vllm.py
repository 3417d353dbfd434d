"""A vLLM-shaped engine for tests: counters that fit each other, in the spelling of several versions.

Written from what vLLM's versions name; it is no vLLM, and its numbers are made up.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TTFT_BOUNDS = (0.01, 0.1, 1.0)


@dataclass
class Rank:
    """Counters of one engine core."""

    depth: int
    cycles: int = 0
    proposed: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    emitted: int = 0
    prompt: int = 0
    finished: dict[str, int] = field(default_factory=lambda: {"stop": 0, "length": 0, "abort": 0})
    first_tokens: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.proposed = self.proposed or [0] * self.depth
        self.accepted = self.accepted or [0] * self.depth

    def cycle(self, drafts: int, accepted: int) -> None:
        """Verify ``drafts`` drafts of which the first ``accepted`` are right."""
        self.cycles += 1
        for position in range(drafts):
            self.proposed[position] += 1
        for position in range(accepted):
            self.accepted[position] += 1
        self.emitted += accepted + 1

    def finish(self, reason: str = "stop") -> None:
        """Finish a request of 10 prompt tokens."""
        self.prompt += 10
        self.emitted += 1
        self.finished[reason] += 1
        self.first_tokens.append(0.05)


@dataclass
class VllmEngine:
    """``spelling``: a version of the table; ``ranks``: data-parallel engines."""

    depth: int = 3
    spelling: str = "0.10"
    size: int = 1
    model: str = "tiny/target"
    running: int = 1
    is_speculating: bool = True
    without_total: bool = False
    started: float | None = 1_790_000_000.25
    """None: several processes share the work, and none says when it started."""
    ranks: list[Rank] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Set all counters to 0."""
        self.started = None if self.started is None else self.started + 3_600
        self.ranks = [Rank(self.depth) for _ in range(self.size)]

    def serve(self, cycles: int, seed: int = 1, share: float = 0.6) -> None:
        """Run cycles on every rank in which each draft is right with ``share``, given those before it."""
        chance = random.Random(seed)
        for rank in self.ranks:
            for _ in range(cycles):
                accepted = 0
                while accepted < self.depth and chance.random() < share:
                    accepted += 1
                rank.cycle(self.depth, accepted)
            rank.finish()

    def metrics(self) -> bytes:
        """Return ``/metrics``."""
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterator[str]:
        yield "# HELP python_info Python platform information"
        yield "# TYPE python_info gauge"
        yield 'python_info{implementation="CPython",major="3"} 1.0'
        if self.started is not None:
            yield f"process_start_time_seconds {self.started}"
        for number, rank in enumerate(self.ranks):
            labels = f'model_name="{self.model}"'
            if self.spelling != "0.5":
                labels = f'engine="{number}",{labels}'
            yield from self._gauges(labels)
            yield from self._counters(rank, labels)
            yield from _histogram("time_to_first_token_seconds", rank.first_tokens, labels)

    def _gauges(self, labels: str) -> Iterator[str]:
        yield f"vllm:num_requests_running{{{labels}}} {float(self.running)}"
        yield f"vllm:num_requests_waiting{{{labels}}} 0.0"
        if self.spelling in ("0.5", "0.8", "0.9"):
            yield f"vllm:gpu_cache_usage_perc{{{labels}}} 0.25"
        if self.spelling in ("0.9", "0.10"):
            yield f"vllm:kv_cache_usage_perc{{{labels}}} 0.25"

    def _counters(self, rank: Rank, labels: str) -> Iterator[str]:
        total = "" if self.without_total else "_total"
        yield f"vllm:generation_tokens{total}{{{labels}}} {float(rank.emitted)}"
        yield f"vllm:prompt_tokens{total}{{{labels}}} {float(rank.prompt)}"
        for reason, count in rank.finished.items():
            yield f'vllm:request_success{total}{{{labels},finished_reason="{reason}"}} {float(count)}'
        if self.spelling == "0.10":
            yield from _histogram("inter_token_latency_seconds", rank.first_tokens, labels)
        else:
            yield from _histogram("time_per_output_token_seconds", rank.first_tokens, labels)
        if not self.is_speculating:
            return
        if self.spelling == "0.5":
            yield from _old_speculation(rank, labels)
            return
        spec = "vllm:spec_decode_num_"
        yield f"{spec}drafts{total}{{{labels}}} {float(rank.cycles)}"
        yield f"{spec}draft_tokens{total}{{{labels}}} {float(sum(rank.proposed))}"
        yield f"{spec}accepted_tokens{total}{{{labels}}} {float(sum(rank.accepted))}"
        for position, count in enumerate(rank.accepted):
            own = f'{labels},position="{position}"'
            yield f"{spec}accepted_tokens_per_pos{total}{{{own}}} {float(count)}"
            if self.spelling == "0.10":
                yield f"{spec}draft_tokens_per_pos{total}{{{own}}} {float(rank.proposed[position])}"


def _old_speculation(rank: Rank, labels: str) -> Iterator[str]:
    """The V0 engine's: counters to which running totals are added."""
    drafts, accepted = sum(rank.proposed), sum(rank.accepted)
    emitted = accepted + rank.cycles
    share = accepted / drafts if drafts else float("nan")
    efficiency = emitted / (rank.cycles * (rank.depth + 1)) if drafts else float("nan")
    yield f"vllm:spec_decode_draft_acceptance_rate{{{labels}}} {share}"
    yield f"vllm:spec_decode_efficiency{{{labels}}} {efficiency}"
    yield f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {3.0 * accepted}"
    yield f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {3.0 * drafts}"
    yield f"vllm:spec_decode_num_emitted_tokens_total{{{labels}}} {3.0 * emitted}"


def _histogram(name: str, values: list[float], labels: str) -> Iterator[str]:
    for bound in (*TTFT_BOUNDS, float("inf")):
        count = sum(value <= bound for value in values)
        text = "+Inf" if bound == float("inf") else str(bound)
        yield f'vllm:{name}_bucket{{{labels},le="{text}"}} {float(count)}'
    yield f"vllm:{name}_sum{{{labels}}} {sum(values)}"
    yield f"vllm:{name}_count{{{labels}}} {float(len(values))}"
