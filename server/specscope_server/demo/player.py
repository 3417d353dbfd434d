"""Plays the story against a clock: which launch is up, and what its engine has counted so far."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from specscope_server.demo.exposition import Snapshot, render
from specscope_server.demo.reports import Reports
from specscope_server.demo.scheduler import Request, Scheduler
from specscope_server.demo.story import Launch, Story
from specscope_server.demo.versions import EngineVersion

KV_TOKENS = 1_180_000
CONTEXT_LENGTH = 262_144


@dataclass(slots=True)
class Player:
    """One demo engine. ``started_ms`` is when the story began (UTC epoch ms); equal seeds play equally."""

    version: EngineVersion
    story: Story
    seed: int
    name: str
    started_ms: int
    pid: int = 1
    scheduler: Scheduler | None = None
    elapsed_ms: float = 0.0
    reports: Reports | None = None
    """Where finished requests are passed on to; None = nobody reports."""
    _launches: list[Launch] = field(init=False)

    def __post_init__(self) -> None:
        """Lay out the launches and start the first."""
        self._launches = self.story.launches()
        self.advance(self.started_ms)

    @property
    def model_name(self) -> str:
        """Return the served model name; it always ends with `` (demo)``."""
        return f"{self.name} (demo)"

    def advance(self, now_ms: int) -> None:
        """Play up to ``now_ms``; a clock that went back changes nothing."""
        self.elapsed_ms = max(self.elapsed_ms, float(now_ms - self.started_ms))
        begun = [launch for launch in self._launches if launch.up_ms <= self.elapsed_ms]
        for launch in begun:
            if self.scheduler is None or launch.index > self.scheduler.launch.index:
                self.scheduler = Scheduler(self.story, launch, self.version.telemetry(launch), str(self.seed))
                self.scheduler.on_finish = self._report
        if self.scheduler:
            self.scheduler.advance(self.elapsed_ms)

    def _report(self, request: Request) -> None:
        if self.reports and self.scheduler:
            launch, now_ms = self.scheduler.launch, self.scheduler.now_ms
            steps, took_ms = launch.plan.model.num_steps, now_ms - request.arrived_ms
            self.reports.finished(launch.index, request, steps, self.started_ms + now_ms, took_ms)

    @property
    def current(self) -> Scheduler | None:
        """Return what is running now, None while the engine restarts."""
        scheduler = self.scheduler
        return scheduler if scheduler and self.elapsed_ms < scheduler.launch.down_ms else None

    def process_id(self, launch: Launch) -> int:
        """Return the pid shown for a launch: a new one for each start."""
        return self.pid + launch.index

    def startup(self, launch: Launch) -> dict[str, float]:
        """Return startup times of a launch (seconds by phase)."""
        rng = self._identity(launch, "startup")
        load, kv = rng.uniform(180, 260), rng.uniform(2, 4)
        scheduler = load + kv + rng.uniform(60, 90)
        return {
            "load_weight": load,
            "kv_cache_allocation": kv,
            "scheduler_e2e": scheduler,
            "tokenizer_e2e": scheduler + rng.uniform(15, 30),
        }

    def random_seed(self, launch: Launch) -> int:
        """Return the engine's own random seed, new for each launch."""
        return self._identity(launch, "seed").randrange(10**9)

    def _identity(self, launch: Launch, what: str) -> random.Random:
        """Return the source of what tells one process start from every other, in any run."""
        return random.Random(f"{self.seed}/{self.started_ms}/{launch.index}/{what}")  # noqa: S311

    def snapshot(self, scheduler: Scheduler) -> Snapshot:
        """Return what the metrics are drawn from."""
        launch = scheduler.launch
        startup = {f"startup_{phase}": seconds for phase, seconds in self.startup(launch).items()}
        constants = {
            "max_total_num_tokens": KV_TOKENS,
            "weight_memory_usage_gb": 74.2 if launch.plan.model.num_steps else 72.9,
            "kv_cache_memory_usage_gb": 41.5,
            "page_size": 1,
            "num_pages": KV_TOKENS,
            "context_len": CONTEXT_LENGTH,
        }
        active = len(scheduler.running) + len(scheduler.waiting)
        pid = self.process_id(launch)
        return Snapshot(self.model_name, scheduler.telemetry, constants | startup, active, pid)

    def metrics(self, scheduler: Scheduler) -> str:
        """Return the body of ``/metrics``."""
        return render(self.version.families, self.snapshot(scheduler))
