"""The demo's story on a simulated clock: a real collector reads the engine, the real alerts are evaluated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy import Engine
from tests.demo.playing import STARTED_MS
from tests.server.client import Web

from specscope_collectors.board import Board
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.observations import Target
from specscope_collectors.references.document import packed
from specscope_collectors.sources.probe.taking import Taking
from specscope_collectors.target import TargetCollector
from specscope_server.alerts.running import Alerting
from specscope_server.app import create_app
from specscope_server.demo.engine import create_app as engine_app
from specscope_server.demo.player import Player
from specscope_server.demo.state_spool import StateSpool
from specscope_server.demo.states import references
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

NAME = "story (demo)"


@dataclass
class Stage:
    """One demo engine and one Specscope; ``now_ms`` is the time of both."""

    engine: Engine
    story: Story
    folder: Path | None = None
    """Where the engine's probe writes states; None = it has none."""
    scrape_seconds: int = 15
    version: str = "0.5.23"
    alerts: Path | None = None
    """File of rules; None = the shipped ones."""
    now_ms: int = STARTED_MS
    player: Player = field(init=False)
    web: Web = field(init=False)

    def __post_init__(self) -> None:
        """Begin the story."""
        self.player = Player(VERSIONS[self.version], self.story, 7, "Kimi-K2.5", STARTED_MS)
        settings = Settings(scrape_interval_seconds=self.scrape_seconds, alerts=self.alerts)
        self.web = Web(create_app(settings, engine=self.engine, clock=self.clock))

    def clock(self) -> int:
        """Return what time it is."""
        return self.now_ms

    @property
    def alerting(self) -> Alerting:
        """Return what evaluates the rules."""
        found: Alerting = self.web.app.state.alerting
        return found

    def upload_references(self) -> None:
        """Say what the draft was trained on."""
        for reference in references(self.now_ms):
            headers = {"content-type": "application/gzip"}
            answer = self.web.request(
                "POST", "/api/v1/references", content=packed(reference), headers=headers
            )  # fmt: skip
            assert answer.status_code == httpx.codes.OK, answer.text

    def play(
        self, until_seconds: float, every_seconds: int = 60, act: Callable[[], object] | None = None
    ) -> None:
        """Scrape at each interval up to a moment of the story; ``act`` from time to time."""
        asyncio.run(self._play(until_seconds, every_seconds, act or (lambda: None)))

    async def _play(self, until_seconds: float, every_seconds: int, act: Callable[[], object]) -> None:
        transport = httpx.ASGITransport(engine_app(self.player, self.clock, "127.0.0.1", 30000))
        with ThreadPoolExecutor(1) as pool:
            async with httpx.AsyncClient(transport=transport) as client:
                collector, taking = self._readers(client, pool)
                spool = None if self.folder is None else StateSpool(self.folder)
                while self.now_ms < STARTED_MS + until_seconds * 1_000:
                    self.now_ms += self.scrape_seconds * 1_000
                    await collector.scrape()
                    if spool and spool.step(self.player):
                        taking.step()
                    if (self.now_ms - STARTED_MS) // 1_000 % every_seconds == 0:
                        act()

    def _readers(self, client: httpx.AsyncClient, pool: ThreadPoolExecutor) -> tuple[TargetCollector, Taking]:
        options = CollectorOptions(scrape_interval_seconds=self.scrape_seconds, loads_interval_seconds=600)
        sink, board = IngestWriter(self.engine, self.clock), Board()
        target = Target(name=NAME, base_url="http://127.0.0.1:30000")
        collector = TargetCollector(
            target, sink, options, client,
            clock=self.clock, monotonic=self._monotonic, pool=pool, board=board,
        )  # fmt: skip
        context = JobContext(
            sink=sink, options=options, clock=self.clock, monotonic=self._monotonic, pool=pool, board=board
        )  # fmt: skip
        spool = self.folder or Path()
        return collector, Taking(spool=spool, server=NAME, context=context, collector_id="probe:demo")

    def _monotonic(self) -> float:
        return self.now_ms / 1_000
