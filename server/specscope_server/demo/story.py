"""The timeline of the demo: which configuration runs when, and how much traffic it gets.

Story time runs ``speed`` times faster than the clock; rates of requests and tokens do not. Lengths of phases
are in story seconds. Pure: a `Story` only answers what holds at a moment.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from specscope_server.demo.model import DEAD, HEALTHY, CycleModel

MINUTE = 60.0
RESTART_SECONDS = 90.0
"""How long the engine is away when a phase starts a new launch (story seconds)."""
LEAST_AWAY_MS = 6_000.0
"""But at least so long on the clock, that a collector with the default interval sees it away …"""
LARGEST_AWAY_SHARE = 0.3
"""… unless that is more than this share of the phase."""
LOAD_CYCLE_SECONDS = 4 * 3600.0
"""The load curve of a day, squeezed into four story hours."""
MAX_RATE = 2.0
"""No load asks for more requests per second (of the clock) than this."""

RIGHT_LAYERS, WRONG_LAYERS = (2, 30, 58), (-1, 2, 30)
SLOW_NETWORK = {"NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0", "NCCL_MIN_NCHANNELS": "4"}
TUNED_NETWORK = {"NCCL_ALGO": "NVLS", "NCCL_NVLS_ENABLE": "1", "NCCL_MIN_NCHANNELS": "24"}


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Configuration of one launch."""

    model: CycleModel
    aux_layers: tuple[int, ...] = RIGHT_LAYERS

    @property
    def environment(self) -> dict[str, str]:
        """Return the NCCL variables the engine was started with."""
        return TUNED_NETWORK if self.model.network_tuned else SLOW_NETWORK


@dataclass(frozen=True, slots=True)
class Load:
    """Traffic: ``rate`` requests/s of the clock at the peak, or one user who always waits for an answer."""

    rate: float = 0.0
    benchmark: bool = False
    daily: bool = False
    """Follow the load curve of a day, with a quiet night."""

    def rate_at(self, story_seconds: float) -> float:
        """Return requests per second (of the clock) at a moment of the phase."""
        if not self.daily:
            return self.rate
        day = 0.5 + 0.65 * math.sin(2 * math.pi * story_seconds / LOAD_CYCLE_SECONDS)
        return self.rate * min(1.0, max(0.0, day))


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the story. ``launch`` None = the launch before keeps running."""

    name: str
    seconds: float
    load: Load
    launch: LaunchPlan | None = None


def _sweep(num_steps: int, minutes: float = 12) -> Phase:
    name = f"sweep: {num_steps} steps" if num_steps else "sweep: no speculation"
    return Phase(name, minutes * MINUTE, Load(benchmark=True), LaunchPlan(CycleModel(num_steps)))


PHASES = (
    Phase(
        "dead draft",
        24 * MINUTE,
        Load(rate=1.2),
        LaunchPlan(CycleModel(5, DEAD, network_tuned=False), WRONG_LAYERS),
    ),
    Phase("idle", 14 * MINUTE, Load()),
    Phase(
        "right layers", 20 * MINUTE, Load(rate=0.7), LaunchPlan(CycleModel(5, HEALTHY, network_tuned=False))
    ),
    Phase("network tuned", 18 * MINUTE, Load(rate=0.7), LaunchPlan(CycleModel(5))),
    _sweep(5),
    _sweep(4),
    _sweep(3),
    _sweep(1),
    _sweep(0),
    _sweep(2, minutes=20),
    Phase("calm", math.inf, Load(rate=1.8, daily=True)),
)


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch on the clock: milliseconds since the demo began. It answers in ``[up_ms, down_ms)``."""

    index: int
    plan: LaunchPlan
    up_ms: float
    down_ms: float


@dataclass(frozen=True, slots=True)
class Story:
    """A list of phases played ``speed`` times faster than it says; the last phase never ends."""

    speed: float = 30.0
    phases: tuple[Phase, ...] = PHASES
    _starts: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Lay out the phases: every step of an engine asks for them."""
        ends = accumulate(phase.seconds * 1000 / self.speed for phase in self.phases)
        object.__setattr__(self, "_starts", (0.0, *list(ends)[:-1]))

    def starts_ms(self) -> tuple[float, ...]:
        """Return when each phase begins, milliseconds since the demo began."""
        return self._starts

    def phase_at(self, elapsed_ms: float) -> tuple[Phase, float]:
        """Return the phase at a moment and the story seconds since it began."""
        starts = self._starts
        index = max(0, bisect_right(starts, elapsed_ms) - 1)
        return self.phases[index], (elapsed_ms - starts[index]) / 1000 * self.speed

    def launches(self) -> list[Launch]:
        """Return all launches in order; the engine is away between ``down_ms`` and the next ``up_ms``."""
        begun = [
            (start, phase.launch)
            for start, phase in zip(self._starts, self.phases, strict=True)
            if phase.launch
        ]
        ends = [start for start, _ in begun[1:]] + [math.inf]
        return [
            Launch(index, plan, start + (self._away_ms(end - start) if index else 0.0), end)
            for index, ((start, plan), end) in enumerate(zip(begun, ends, strict=True))
        ]

    def _away_ms(self, launch_ms: float) -> float:
        """Return how long the engine takes to come back, of the time until the next launch."""
        least_ms = min(LEAST_AWAY_MS, LARGEST_AWAY_SHARE * launch_ms)
        return max(RESTART_SECONDS * 1000 / self.speed, least_ms)

    def rate_at(self, elapsed_ms: float) -> float:
        """Return requests per second of the clock that arrive at a moment."""
        phase, into = self.phase_at(elapsed_ms)
        return phase.load.rate_at(into)

    def benchmark_at(self, elapsed_ms: float) -> bool:
        """Return whether one benchmark user keeps a request in flight."""
        return self.phase_at(elapsed_ms)[0].load.benchmark
