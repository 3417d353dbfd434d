"""Import of a Prometheus' history: which servers, up to where, and the loop that reads them to the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import Batch, Resume, Sink, Target
from specscope_collectors.sources.prometheus import SOURCE
from specscope_collectors.sources.prometheus.api import Api, ApiProblem
from specscope_collectors.sources.prometheus.discovery import Found, discover
from specscope_collectors.sources.prometheus.history import History, collector_id
from specscope_collectors.sources.prometheus.replay import Tally
from specscope_collectors.sources.prometheus.report import health
from specscope_collectors.sources.prometheus.settings import (
    Config,
    history_of,
    history_target,
    make_api,
    question,
)
from specscope_collectors.threads import in_thread
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.models import (
    Collector,
    Sample,
    SampleHour,
    SampleMinute,
    SampleTenMinutes,
    Series,
    Server,
)
from specscope_server.store.ingest import IngestWriter

TRIES = 6
"""Attempts at one chunk while the API is away or busy."""
FIRST_PAUSE_SECONDS = 1.0
HOUR_MS = 3_600_000
_OURS = f'{{"source":"{SOURCE}"}}'


class Progress(Protocol):
    """Who shows how far it is."""

    def begin(self, server: str, total_ms: int) -> None:
        """A server is about to be read."""
        ...

    def move(self, server: str, done_ms: int, tally: Tally) -> None:
        """So much of its time was read."""
        ...


@dataclass(slots=True)
class Outcome:
    """What became of one server."""

    server: str
    tally: Tally = field(default_factory=Tally)
    note: str = ""
    is_refused: bool = False


@dataclass(slots=True)
class CountingSink:
    """The store as a sink, counting what it stores."""

    writer: IngestWriter
    stored: Counter[str] = field(default_factory=Counter)

    def resume(self, collector_id: str) -> Resume:
        """Return where a history was left."""
        return self.writer.resume(collector_id)

    def apply(self, batch: Batch) -> bool:
        """Store a batch."""
        applied = self.writer.apply_counted(batch)
        self.stored["values"] += applied.samples + applied.distributions
        self.stored["already there"] += applied.duplicates
        for reason, count in applied.refused.items():
            self.stored[f"refused: {reason}"] += count
        return applied.applied


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asks for; times as functions of the API's clock."""

    config: Config
    since_ms: Callable[[int], int]
    until_ms: Callable[[int], int]
    max_series: int


@dataclass(slots=True)
class HistoryImport:
    """One run. ``engine`` None: a dry run, which asks no store."""

    asked: Asked
    sink: Sink
    progress: Progress
    engine: Engine | None = None
    clock: Clock = system_clock
    outcomes: list[Outcome] = field(default_factory=list)

    async def run(self) -> Found:
        """Read every server to the end. Raises `ApiProblem`, `SharedError`, and what the store raises."""
        config = self.asked.config
        client, api = make_api(config, CollectorOptions())
        async with client:
            now_ms = await self._patiently(api.now_ms)
            since_ms, until_ms = self.asked.since_ms(now_ms), self.asked.until_ms(now_ms)
            asked = question(config, since_ms, until_ms)
            found: Found = await self._patiently(lambda: discover(api, asked))
            for name in found.servers:
                await self._one(api, found, name, since_ms, until_ms)
        return found

    async def _one(self, api: Api, found: Found, name: str, since_ms: int, until_ms: int) -> None:
        outcome = Outcome(name)
        self.outcomes.append(outcome)
        target, until_ms = await in_thread(partial(self._bounds, api, name, outcome, until_ms))
        if outcome.is_refused or until_ms <= since_ms:
            return
        history = history_of(
            self.asked.config,
            api,
            found,
            target,
            sink=self.sink,
            in_thread=in_thread,
            max_series=self.asked.max_series,
        )
        await in_thread(partial(history.open, since_ms))
        outcome.tally = history.tally
        await self._read(api, history, until_ms)

    async def _read(self, api: Api, history: History, until_ms: int) -> None:
        name = history.reading.target.name
        start_ms = min(segment.state.place.asked_from_ms for segment in history.segments)
        self.progress.begin(name, until_ms - start_ms)
        now_ms, is_done = await self._patiently(api.now_ms), False
        while not is_done:
            is_done = await self._patiently(lambda: history.advance(until_ms, now_ms))
            self.progress.move(name, history.done_ms(until_ms), history.tally)
        if history.tally.scrapes:
            found = health(api, history.tally, self.clock(), is_done=True)
            await in_thread(partial(history.tell, found))

    async def _patiently(self, ask: Callable[[], Any]) -> Any:
        """Ask again, later and later, while the API is away or busy."""
        pause = FIRST_PAUSE_SECONDS
        for left in range(TRIES - 1, -1, -1):
            try:
                return await ask()
            except ApiProblem as problem:
                if not (problem.is_passing and left):
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("the last attempt raises or returns")

    def _bounds(self, api: Api, name: str, outcome: Outcome, until_ms: int) -> tuple[Target, int]:
        """Return where it goes, and where it ends: before our own scrape began."""
        target = history_target(name, api)
        if self.engine is None:
            return target, until_ms
        with Session(self.engine) as session:
            known = session.scalar(select(Server.base_url).where(Server.name == name))
            first_ms = first_scraped_ms(session, name)
            other = read_from_elsewhere(session, name, api.url)
        if other is not None:
            outcome.is_refused = True
            outcome.note = f"its history was read from {other} before: a second source would count it twice"
        elif first_ms is not None and first_ms <= until_ms:
            until_ms = first_ms - 1
            outcome.note = "Specscope scrapes this server itself: read up to where that began"
        return Target(name=name, base_url=known or target.base_url), until_ms


def first_scraped_ms(session: Session, server: str) -> int | None:
    """Return when our own scrape of a server first succeeded; None when it never did.

    Raw values and fine summaries go with time; then the beginning of the hour is all that is known.
    """
    series = (
        select(Series.id)
        .join(Server, Server.id == Series.server_id)
        .where(Server.name == server, Series.metric == "scrape.up", Series.labels != _OURS)
    )

    def first(table: Any, value: Any) -> int | None:
        return session.scalar(select(func.min(table.time_ms)).where(table.series_id.in_(series), value >= 1))

    hour_ms = first(SampleHour, SampleHour.max)
    finer = (
        first(Sample, Sample.value),
        first(SampleMinute, SampleMinute.max),
        first(SampleTenMinutes, SampleTenMinutes.max),
    )
    for time_ms in finer:
        if time_ms is not None and (hour_ms is None or time_ms < hour_ms + HOUR_MS):
            return time_ms
    return hour_ms


def read_from_elsewhere(session: Session, server: str, url: str) -> str | None:
    """Return the other API from which the history of a server was read before; None when there is none."""
    prefix, own = collector_id(server, ""), collector_id(server, url)
    query = select(Collector.id).where(Collector.id.startswith(prefix, autoescape=True))
    for found in session.scalars(query):
        if found != own and not found.startswith(own + "<"):
            return found[len(prefix) :].partition("<")[0]
    return None
