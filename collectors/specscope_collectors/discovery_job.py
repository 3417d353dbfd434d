"""Looks for servers again and again, and says how that went.

An error never removes a server: the last good list is kept and the Sources page says so. A server that a good
list leaves out is watched for a grace, since lists flap. What was listed last outlives a restart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

import structlog

from specscope_collectors.clock import Clock, Monotonic
from specscope_collectors.config import AskedBy, TargetError, parse_target
from specscope_collectors.discoveries import Answer, Discover, Discovery, DiscoveryError, Listed
from specscope_collectors.discovery_memory import Known, Memory, bounded_labels, unique
from specscope_collectors.discovery_words import of_answer, of_error
from specscope_collectors.observations import HealthState, SourceHealth, Target
from specscope_collectors.own_health import REPORT_SECONDS, OwnHealth
from specscope_collectors.plan import DiscoveryPlan, Watching
from specscope_collectors.roster import Roster
from specscope_collectors.watching import named_here

T = TypeVar("T")

MAX_NAME = 200
MAX_URL = 500

log = structlog.get_logger("specscope.collector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a discovery's job needs besides its plan."""

    roster: Roster
    health: OwnHealth
    pool: Executor
    clock: Clock
    monotonic: Monotonic = time.monotonic


class DiscoveryJob:
    """One ``[[discover]]`` table at work."""

    def __init__(self, name: str, plan: DiscoveryPlan, discovery: Discovery, around: Surroundings) -> None:
        self.name = name
        self._plan = plan
        self._config: Discover = plan.config
        self._discovery = discovery
        self._around = around
        self._memory = Memory()
        self._is_resumed = False
        self._stored = b""
        self._said: SourceHealth | None = None
        self._said_at = 0.0

    async def step(self) -> float:
        """Look once; return when to look again."""
        await self._resume()
        began = self._around.monotonic()
        answer, error = await self._look()
        now = self._around.monotonic()
        refused: list[str] = []
        if answer is not None:
            known, refused = read_listed(answer, self._config, self._plan.options.loopback_name)
            self._memory.take(known, now, self._config.grace_seconds)
        elif self._has_expired(now):
            self._memory.drop_all()
        self._around.roster.set(self.name, self._watchings())
        refused += self._around.roster.refused(self.name)
        await self._say(self._health(error, answer, refused, now - began), now)
        sooner = answer.next_seconds if answer is not None else None
        return self._config.interval_seconds if sooner is None else min(sooner, self._config.interval_seconds)

    async def close(self) -> None:
        """Release connections."""
        await self._discovery.close()

    async def _resume(self) -> None:
        if self._is_resumed:
            return
        data = await self._in_pool(self._around.health.resume)
        if data:
            self._memory.restore(data, self._around.monotonic())
            self._stored = data
            self._around.roster.set(self.name, self._watchings())
        self._is_resumed = True

    async def _look(self) -> tuple[Answer | None, DiscoveryError | None]:
        try:
            return await self._discovery.look(), None
        except DiscoveryError as error:
            return None, error

    def _has_expired(self, now: float) -> bool:
        keep = self._discovery.keep_seconds
        return keep is not None and now - self._memory.answered >= keep

    def _watchings(self) -> list[Watching]:
        options = self._plan.options
        return [
            Watching(target=known.target, options=options, labels=known.labels, origin=self.name)
            for known in self._memory.known.values()
        ]

    def _health(
        self, error: DiscoveryError | None, answer: Answer | None, refused: Sequence[str], seconds: float
    ) -> SourceHealth:
        found = len(self._memory.known)
        said = (
            of_error(error, found)
            if error is not None
            else of_answer(answer or Answer(()), refused, found, self._memory.absent)
        )
        return SourceHealth(
            source=self.name,
            time_ms=self._around.clock(),
            state=said.state,
            url=self._discovery.asked[:MAX_URL],
            duration_seconds=max(seconds, 0.0),
            series=found,
            refused=len(refused),
            detail=said.detail,
            remedy=said.remedy,
        )

    async def _say(self, health: SourceHealth, now: float) -> None:
        """Store when something changed, and now and then although nothing did."""
        checkpoint = self._memory.encode()
        same = self._said is not None and _words(health) == _words(self._said)
        if same and checkpoint == self._stored and now - self._said_at < REPORT_SECONDS:
            return
        await self._in_pool(lambda: self._around.health.report([health], checkpoint))
        if not same:
            write = log.info if health.state is HealthState.OK else log.warning
            write(
                "discovery",
                name=self.name,
                state=health.state.value,
                servers=health.series,
                detail=health.detail,
            )
        self._said, self._said_at, self._stored = health, now, checkpoint

    async def _in_pool(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._around.pool, work)


def _words(health: SourceHealth) -> tuple[object, ...]:
    return (health.state, health.detail, health.series, health.refused, health.url)


def read_listed(answer: Answer, config: Discover, host: str | None) -> tuple[list[Known], list[str]]:
    """Return the servers of an answer that can be watched, and in words which cannot."""
    found: list[Known] = []
    refused = list(answer.refused)
    for listed in answer.listed[: config.max_targets]:
        try:
            found.append(Known(_target(listed, host), bounded_labels(config, listed)))
        except TargetError as error:
            refused.append(str(error)[:200])
    excess = len(answer.listed) - config.max_targets
    if excess > 0:
        refused.append(f"{excess} servers beyond max_targets = {config.max_targets}")
    known, twins = unique(found)
    return known, refused + twins


def _target(listed: Listed, host: str | None) -> Target:
    target = named_here(parse_target(listed.url, AskedBy("server", "list it without them")), host)
    name = (listed.name or "").strip()
    if not name:
        return target
    if len(name) > MAX_NAME or not name.isprintable():
        raise TargetError(f"server {target.base_url}: its name is too long or not printable")
    return Target(name=name, base_url=target.base_url)
