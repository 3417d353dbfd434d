"""Healthy hours of the demo engine: a day, an idle night, a night with few requests, a Monday morning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tests.demo.acting import CANARY, CANARY_EVERY_SECONDS, HEALTH, Actor

from specscope_server.demo.model import CycleModel
from specscope_server.demo.scheduler import Request
from specscope_server.demo.story import LaunchPlan, Load, Phase, Story

HOUR = 3_600.0
PLAIN_SECONDS, SETTLED_SECONDS = 900.0, 900.0
"""Before the day, the engine ran without speculation; what that restart tells is over after a while."""
LONG_TOKENS, LONG_EVERY_SECONDS = 6_000, 1_500.0
CANARY_PROMPTS, CANARY_TOKENS = 8, 64
HEALTH_TOKENS = 2
"""What a health check has generated: one cycle, whose drafts are cut off at the end of the answer."""
PLAIN, DAY, IDLE, FEW, MONDAY = "plain", "a day", "an idle night", "a few long requests", "a Monday morning"


@dataclass(frozen=True, slots=True)
class Daily(Load):
    """Traffic from nothing to its peak and back to a third of it."""

    cycle_seconds: float = 1.0

    def rate_at(self, story_seconds: float) -> float:
        """Return requests per second at a moment of the phase."""
        return self.rate * max(0.0, 0.67 + 0.67 * math.sin(2 * math.pi * story_seconds / self.cycle_seconds))


@dataclass(frozen=True, slots=True)
class WholeDay(Load):
    """Traffic of 24 h from midnight on: nothing until three in the morning, its peak at noon, nothing from
    nine in the evening.
    """

    def rate_at(self, story_seconds: float) -> float:
        """Return requests per second at a moment of the phase."""
        return self.rate * max(0.0, 0.55 - 0.75 * math.cos(2 * math.pi * story_seconds / (24 * HOUR)))


@dataclass(frozen=True, slots=True)
class Ramp(Load):
    """Traffic that begins at nothing and reaches its peak after a quarter of an hour."""

    def rate_at(self, story_seconds: float) -> float:
        """Return requests per second at a moment of the phase."""
        return self.rate * min(1.0, story_seconds / 900)


@dataclass(slots=True)
class Hours:
    """How long each stretch is (hours), and who asks besides the traffic."""

    day: float
    idle: float
    few: float
    monday: float = 0.75
    num_steps: int = 2
    asked_until: float = 0.0

    @property
    def lengths(self) -> dict[str, float]:
        """Return the seconds of each stretch."""
        hours = {DAY: self.day, IDLE: self.idle, FEW: self.few, MONDAY: self.monday}
        return {PLAIN: PLAIN_SECONDS, **{name: length * HOUR for name, length in hours.items()}}

    @property
    def stretches(self) -> dict[str, tuple[float, float]]:
        """Return when each begins and ends, in seconds."""
        edges = pairwise(accumulate(self.lengths.values(), initial=0.0))
        return dict(zip(self.lengths, edges, strict=True))

    @property
    def seconds(self) -> float:
        """Return how long all are together."""
        return sum(self.lengths.values())

    def story(self) -> Story:
        """Return what the engine plays: from the day on, one launch."""
        lengths = self.lengths
        daily = WholeDay(0.15) if self.day >= 24 else Daily(0.15, cycle_seconds=lengths[DAY] / 1.5)
        loads = {PLAIN: Load(0.1), DAY: daily, IDLE: Load(), FEW: Load(), MONDAY: Ramp(0.8)}
        launches = {PLAIN: LaunchPlan(CycleModel(0)), DAY: LaunchPlan(CycleModel(self.num_steps))}
        return Story(
            1.0, tuple(Phase(name, lengths[name], loads[name], launches.get(name)) for name in loads)
        )

    def rest(self, now: float) -> int:
        """Return for how many seconds nobody reads: three minutes in the depth of the idle night."""
        begins, ends = self.stretches[IDLE]
        return 180 if begins + HOUR <= now < ends - HOUR else 0

    def ask(self, actor: Actor) -> None:
        """Send what is due: health checks at each reading, a canary, and at night someone with much."""
        player = actor.player
        player.advance(actor.watcher.clock())
        scheduler, now = player.current, player.elapsed_ms / 1_000
        if scheduler:
            scheduler.waiting += self._due(now)
        self.asked_until = now

    def _due(self, now: float) -> Iterator[Request]:
        yield _request(now, 12, HEALTH_TOKENS, HEALTH)
        if self._passed(now, CANARY_EVERY_SECONDS):
            for number in range(CANARY_PROMPTS):
                yield _request(now, 200 + number, CANARY_TOKENS, f"{CANARY}{number}")
        begins, ends = self.stretches[FEW]
        if begins < now < ends and self._passed(now, LONG_EVERY_SECONDS):
            yield _request(now, 9_000, LONG_TOKENS, "archive")

    def _passed(self, now: float, every_seconds: float) -> bool:
        return now // every_seconds > self.asked_until // every_seconds


def _request(now: float, prompt_tokens: int, max_tokens: int, tenant: str) -> Request:
    """Return a request that arrives now (seconds of the story)."""
    return Request(now * 1_000, prompt_tokens, 0, max_tokens, streams=False, tenant=tenant)
