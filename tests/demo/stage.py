"""The demo's story on a simulated clock: real collectors read the engines, the real alerts are evaluated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy import Engine
from tests.demo.acting import Actor, Watcher, player_of
from tests.demo.playing import STARTED_MS
from tests.server.client import Web

from specscope_collectors.config import CollectorOptions
from specscope_collectors.references.document import packed
from specscope_server.alerts.running import Alerting
from specscope_server.app import create_app
from specscope_server.demo.state_spool import StateSpool
from specscope_server.demo.states import references
from specscope_server.demo.story import Story
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter


@dataclass
class Stage:
    """Demo engines and one Specscope; ``now_ms`` is the time of all."""

    engine: Engine
    story: Story
    folder: Path | None = None
    """Where the engines' probes write states; None = they have none."""
    scrape_seconds: int = 15
    versions: Sequence[str] = ("0.5.23",)
    alerts: Path | None = None
    """File of rules; None = the shipped ones."""
    seed: int = 7
    before_reading: Callable[[Actor], None] = lambda _: None
    """Called before an engine is read."""
    rest: Callable[[float], int] = lambda _: 0
    """Seconds of the story → seconds for which nothing is read, besides the interval."""
    now_ms: int = STARTED_MS
    web: Web = field(init=False)

    def __post_init__(self) -> None:
        """Begin the story."""
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
        """Read all at each interval up to a moment of the story; ``act`` from time to time."""
        asyncio.run(self._play(until_seconds, every_seconds, act or (lambda: None)))

    async def _play(self, until_seconds: float, every_seconds: int, act: Callable[[], object]) -> None:
        async with AsyncExitStack() as stack:
            actors = await self._actors(stack)
            while self.now_ms < STARTED_MS + until_seconds * 1_000:
                rest_seconds = self.rest((self.now_ms - STARTED_MS) / 1_000)
                self.now_ms += (self.scrape_seconds + rest_seconds) * 1_000
                for actor in actors:
                    self.before_reading(actor)
                    await actor.step()
                if (self.now_ms - STARTED_MS) // 1_000 % every_seconds == 0:
                    act()

    async def _actors(self, stack: AsyncExitStack) -> list[Actor]:
        pool = stack.enter_context(ThreadPoolExecutor(1))
        transport = httpx.ASGITransport(self.web.app)
        web = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url=self.web.base_url)
        )
        options = CollectorOptions(scrape_interval_seconds=self.scrape_seconds, loads_interval_seconds=600)
        watcher = Watcher(IngestWriter(self.engine, self.clock), options, self.clock, pool, web)
        return [
            Actor(
                player_of(version, self.story, self.seed, STARTED_MS), version, watcher,
                StateSpool(self.folder / version) if self.folder else None,
            )
            for version in self.versions
        ]  # fmt: skip
