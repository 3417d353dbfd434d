"""What one launch of the demo engine counts and shows, kept the way SGLang keeps it.

* Counters of requests, tokens and verify calls grow when a request *finishes*; ``realtime_tokens`` at every
  step.
* Acceptance gauges are means over the last `LOG_INTERVAL` decode steps; they stay through prefill and idle.
* ``gen_throughput`` divides the tokens of that window by the wall time since the last, idle time included.

The engine is modelled without overlap scheduling, so no step runs for a request that has already finished.
Tokens past a request's limit are counted by the step (``realtime_tokens``, gauges) but not delivered.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from specscope_server.demo import histograms as bounds
from specscope_server.demo.histograms import Histogram
from specscope_server.demo.model import Cycle
from specscope_server.demo.probe_times import ProbeTimes

LOG_INTERVAL = 40
"""SGLang's default ``--decode-log-interval``, decode steps."""
IDLE_REFRESH_SECONDS = 30.0
STAGE_SHARES = (
    ("process_batch_result", 0.5), ("get_next_batch_to_run", 0.2), ("recv_requests", 0.1),
    ("process_input_requests", 0.05), ("other", 0.15),
)  # fmt: skip
"""Stages that share the time of a step in which the device rests."""
STREAMING, AT_ONCE = "true", "false"


@dataclass(frozen=True, slots=True)
class Rules:
    """What versions of the engine count or show differently."""

    rate_counts_bonus: bool
    """Whether the printed rate is τ/D instead of Σd / Σproposed."""
    decode_clears_hit_rate: bool
    idle_is_shown_at_once: bool
    queue_bounds: tuple[float, ...]


@dataclass(slots=True)
class Window:
    """Decode steps since the last log tick."""

    began_ms: float
    request_steps: int = 0
    accepted: int = 0
    device_ms: float = 0.0

    @property
    def tokens(self) -> int:
        """Return tokens emitted: accepted drafts and one bonus token per request and step."""
        return self.request_steps + self.accepted


def _by_stream(layout: tuple[float, ...]) -> dict[str, Histogram]:
    return {AT_ONCE: Histogram(layout), STREAMING: Histogram(layout)}


@dataclass(slots=True)
class Telemetry:
    """All metrics of one launch. ``num_steps`` = 0: no speculation. Counters are keyed by label value."""

    began_ms: float
    num_steps: int
    rules: Rules

    gauges: dict[str, float] = field(default_factory=dict)
    realtime_tokens: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    prompt_tokens: Counter[str] = field(default_factory=Counter)
    generation_tokens: Counter[str] = field(default_factory=Counter)
    cached_tokens: int = 0
    verify_calls: int = 0
    accepted_delivered: int = 0
    """Accepted drafts of finished requests that reached a client. Not exposed; shows that counters add up."""
    decode_steps: int = 0
    prefill_batches: int = 0
    forward_ms: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    stage_ms: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    probe: ProbeTimes = field(default_factory=ProbeTimes)
    lifetime: Window = field(init=False)
    window: Window = field(init=False)
    first_token: dict[str, Histogram] = field(default_factory=lambda: _by_stream(bounds.FIRST_TOKEN))
    end_to_end: dict[str, Histogram] = field(default_factory=lambda: _by_stream(bounds.END_TO_END))
    per_token: dict[str, Histogram] = field(default_factory=lambda: _by_stream(bounds.INTER_TOKEN))
    inter_token: Histogram = field(default_factory=lambda: Histogram(bounds.INTER_TOKEN))
    prefill_stage: Histogram = field(default_factory=lambda: Histogram(bounds.STAGE))
    queue: Histogram = field(init=False)
    last_decode_ms: float = -math.inf

    def __post_init__(self) -> None:
        """Open the first window."""
        self.window, self.lifetime = Window(self.began_ms), Window(self.began_ms)
        self.queue = Histogram(self.rules.queue_bounds)

    def decode_step(self, cycle: Cycle, accepted: list[int]) -> None:
        """Count one step; ``accepted`` holds d of each request of the batch."""
        self.decode_steps += 1
        self.realtime_tokens["decode"] += len(accepted) + sum(accepted)
        self.window.request_steps += len(accepted)
        self.window.accepted += sum(accepted)
        self.window.device_ms += cycle.device
        for category, spent_ms in (
            ("eagle_draft", cycle.draft), ("target_verify", cycle.verify),
            ("eagle_draft_extend", cycle.extend), ("decode", cycle.plain),
        ):  # fmt: skip
            if spent_ms:
                self.forward_ms[category] += spent_ms
        self.probe.decoded(cycle, len(accepted), self.num_steps)
        self._spend(cycle.device, cycle.rest)

    def prefill(
        self, computed: int, cached: int, device_ms: float, rest_ms: float, requests: int = 1
    ) -> None:
        """Count one prefill batch."""
        self.probe.prefilled(requests, device_ms, rest_ms)
        self.prefill_batches += 1
        self.realtime_tokens["prefill_compute"] += computed
        self.realtime_tokens["prefill_cache"] += cached
        self.forward_ms["extend"] += device_ms
        self.window.device_ms += device_ms
        self.gauges["cache_hit_rate"] = cached / (computed + cached)
        self._spend(device_ms, rest_ms)

    def _spend(self, device_ms: float, rest_ms: float) -> None:
        self.stage_ms["run_batch"] += device_ms
        for stage, share in STAGE_SHARES:
            self.stage_ms[stage] += share * rest_ms

    def tick(self, now_ms: float) -> bool:
        """Publish the window if `LOG_INTERVAL` steps are full; return whether it did."""
        if self.decode_steps % LOG_INTERVAL:
            return False
        window = self.window
        wall_ms = now_ms - window.began_ms
        self.gauges["gen_throughput"] = window.tokens / wall_ms * 1000
        self.gauges["fwd_occupancy"] = 100 * window.device_ms / wall_ms
        if self.num_steps:
            self._publish_acceptance(window)
        if self.rules.decode_clears_hit_rate:
            self.gauges["cache_hit_rate"] = 0.0
        self.window, self.last_decode_ms = Window(now_ms), now_ms
        return True

    def _publish_acceptance(self, window: Window) -> None:
        self.lifetime.request_steps += window.request_steps
        self.lifetime.accepted += window.accepted
        self.gauges["spec_accept_length"] = window.tokens / window.request_steps
        if self.rules.rate_counts_bonus:
            rate = window.tokens / (window.request_steps * (self.num_steps + 1))
        else:
            rate = window.accepted / (window.request_steps * self.num_steps)
        self.gauges["spec_accept_rate"] = rate
        self.gauges |= {"spec_num_steps": self.num_steps, "spec_num_draft_tokens": self.num_steps + 1}

    def batch_gauges(self, running: int, queued: int, held_tokens: int) -> None:
        """Publish what every log call publishes: who runs, who waits, what the KV cache holds."""
        self.gauges |= {"num_running_reqs": running, "num_queue_reqs": queued, "num_used_tokens": held_tokens}

    def idle(self, now_ms: float, spent_ms: float) -> None:
        """Count idle time up to ``now_ms`` and refresh the gauges as late as the engine does."""
        self.stage_ms["idle"] += spent_ms
        long = now_ms - max(self.last_decode_ms, self.began_ms) > IDLE_REFRESH_SECONDS * 1000
        if long or self.rules.idle_is_shown_at_once:
            self.batch_gauges(0, 0, 0)
        if long:
            self.gauges |= {"gen_throughput": 0.0, "fwd_occupancy": math.nan}
