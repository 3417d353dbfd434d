"""One demo engine on a simulated clock, and all that a real Specscope reads of it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from specscope_collectors.board import Board
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.observations import CANARY_ID_PREFIX, CanaryLabel, Target
from specscope_collectors.sources.probe.taking import Taking
from specscope_collectors.target import TargetCollector
from specscope_server.demo.engine import create_app as engine_app
from specscope_server.demo.player import Player
from specscope_server.demo.reports import Reports
from specscope_server.demo.session import watch_name
from specscope_server.demo.state_spool import StateSpool
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS
from specscope_server.kit.clock import Clock
from specscope_server.store.ingest import IngestWriter

HEALTH = "health"
"""Tenant whose requests nobody reports: a balancer that asks whether the engine answers."""
CANARY = "canary "
"""Beginning of the tenant of a prompt of a canary; its number follows."""
CANARY_SET, CANARY_EVERY_SECONDS = "0123456789abcdef", 1_800


@dataclass(frozen=True, slots=True)
class Watcher:
    """What all actors share: where readings go, and the time."""

    sink: IngestWriter
    options: CollectorOptions
    clock: Clock
    pool: Executor
    web: httpx.AsyncClient
    """Of Specscope, for what clients of the engine report."""

    def monotonic(self) -> float:
        """Return the clock in seconds."""
        return self.clock() / 1_000


@dataclass(slots=True)
class Actor:
    """An engine of one version, its clients, its probe (with ``spool``), and what reads them."""

    player: Player
    version: str
    watcher: Watcher
    spool: StateSpool | None
    reported: list[dict[str, Any]] = field(default_factory=list)
    collector: TargetCollector = field(init=False)
    taking: Taking = field(init=False)

    def __post_init__(self) -> None:
        """Connect the engine with its readers."""
        watcher, board = self.watcher, Board()
        engine = engine_app(self.player, watcher.clock, "127.0.0.1", 30000)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(engine))
        self.player.reports = Reports(self._report, self.version, f"{self.player.seed}/{self.version}")
        self.collector = TargetCollector(
            Target(name=self.name, base_url="http://127.0.0.1:30000"), watcher.sink, watcher.options, client,
            clock=watcher.clock, monotonic=watcher.monotonic, pool=watcher.pool, board=board,
        )  # fmt: skip
        context = JobContext(
            sink=watcher.sink, options=watcher.options, clock=watcher.clock, monotonic=watcher.monotonic,
            pool=watcher.pool, board=board,
        )  # fmt: skip
        folder = self.spool.folder if self.spool else Path()
        identity = f"probe:{self.version}"
        self.taking = Taking(spool=folder, server=self.name, context=context, collector_id=identity)

    @property
    def name(self) -> str:
        """Return the name under which it is watched."""
        return watch_name(self.version)

    def _report(self, answer: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        meta, tenant = dict(answer["meta_info"]), labels["tenant"]
        if tenant.startswith(CANARY):
            self.reported.append(_asked_by_canary(meta, tenant.removeprefix(CANARY)))
        elif tenant != HEALTH:
            self.reported.append({**meta, "labels": dict(labels)})

    async def step(self) -> None:
        """Read all there is now."""
        await self.collector.scrape()
        if self.spool and self.spool.step(self.player):
            self.taking.step()
        await self._send()

    async def _send(self) -> None:
        """Send what clients reported."""
        if self.reported:
            answer = await self.watcher.web.post(
                "/api/v1/requests", params={"server": self.name}, json=self.reported
            )
            assert answer.status_code == httpx.codes.OK, answer.text
            assert not answer.json()["refused"], answer.text
            self.reported.clear()


def _asked_by_canary(meta: dict[str, Any], prompt: str) -> dict[str, Any]:
    """Return an answer as a canary reports it; what is generated never changes."""
    run = int(meta["request_finished_ts"] // CANARY_EVERY_SECONDS * CANARY_EVERY_SECONDS * 1_000)
    labels = {
        CanaryLabel.SET.value: CANARY_SET, CanaryLabel.RUN.value: str(run),
        CanaryLabel.PROMPT.value: prompt, CanaryLabel.OUTPUT.value: f"{int(prompt):016x}",
    }  # fmt: skip
    return {**meta, "id": f"{CANARY_ID_PREFIX}{CANARY_SET}:{run}:{prompt}", "labels": labels}


def player_of(version: str, story: Story, seed: int, started_ms: int) -> Player:
    """Return an engine at the first moment of its story."""
    return Player(VERSIONS[version], story, seed, "Kimi-K2.5", started_ms)
