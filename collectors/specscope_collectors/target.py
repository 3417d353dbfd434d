"""One watched target: scrape, decide which launch the values belong to, store, remember.

A scrape that failed is a gap: no value of it is used, the next good one carries the growth. What could not be
stored is not remembered, so it is measured again, over a wider span.
"""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import replace

import httpx
import structlog

from specscope_collectors import launches
from specscope_collectors.alternation import DOUBTFUL, Doubt, Watch
from specscope_collectors.board import Board
from specscope_collectors.clock import Clock, Monotonic, system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.engine import Told
from specscope_collectors.engines import engine_named
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.health import PASSING, READ
from specscope_collectors.identity import Change
from specscope_collectors.increments import CounterMemory
from specscope_collectors.journal import Journal, NotStoredError
from specscope_collectors.launches import Known, Verdict
from specscope_collectors.observations import HealthState, Observation, Sink, Target
from specscope_collectors.reader import Reader
from specscope_collectors.schedule import Due
from specscope_collectors.scrape import doubted
from specscope_collectors.tick import Committed, Tick, growth, health_observations, measurements, metrics_of

MAX_DEFERRALS = 3
"""Scrapes for which values wait until the engine says what it is; then the metrics alone must do."""
RETRY_INFO_SECONDS = 30.0
MAX_PROCESSES = 32
ANSWERED = READ | {HealthState.DISABLED}
"""States of ``/metrics`` in which the engine is worth asking more."""

log = structlog.get_logger("specscope.collector")


class TargetCollector:
    """Scrapes one target whenever `scrape` is called; never raises but for cancellation."""

    def __init__(
        self,
        target: Target,
        sink: Sink,
        options: CollectorOptions,
        client: httpx.AsyncClient,
        *,
        clock: Clock = system_clock,
        monotonic: Monotonic = time.monotonic,
        pool: Executor | None = None,
        board: Board | None = None,
    ) -> None:
        self.target = target
        self.collector_id = f"watch:{target.name}@{target.base_url}"
        self.was_slow = False
        """The last scrape ran into its deadline."""
        self._journal = Journal(target, self.collector_id, sink)
        self._board = board
        self._reader = Reader(target, client, options, clock, pool)
        self._info_due = Due(options.info_interval_seconds, monotonic)
        self._loads_due = Due(options.loads_interval_seconds, monotonic)
        self._watch = Watch(monotonic)
        self._committed: Committed | None = None
        self._info: Told | None = None
        self._must_ask = True
        self._gap = True
        self._was_off = False
        self._down_ms: int | None = None
        self._deferrals = 0
        self._loads_offered = True
        self._processes: tuple[str, ...] = ()
        """Fingerprints of the processes that were seen when counters fell."""

    async def scrape(self) -> None:
        """Scrape once and store the outcome."""
        if self._committed is None:
            self._committed = await self._reader.in_thread(self._resume)
        if self._committed is None:
            return
        committed = self._committed
        tick = await self._read(committed.known)
        tick.plain = await self._reader.in_thread(lambda: growth(tick, committed.memory))
        self.was_slow = tick.metrics.health.state is HealthState.TIMEOUT
        self._notice_gap(tick)
        doubt = await self._doubt(tick, committed.known)
        if doubt is Doubt.ANEW:
            committed = replace(committed, memory=CounterMemory())
            tick.plain = growth(tick, committed.memory)
        if doubt not in DOUBTFUL and tick.metrics.health.state in ANSWERED:
            await self._ask_further(tick, committed.known)
        if tick.metrics.is_blank and self._is_engine(tick, committed.known):
            tick.metrics = replace(tick.metrics, mapped=Mapped(tick.metrics.engine.name))
            tick.plain = growth(tick, committed.memory)
        self._committed = await self._reader.in_thread(lambda: self._conclude(tick, committed))

    # What to ask

    async def _read(self, known: Known | None) -> Tick:
        launch = known.launch if known else None
        adaptive = launch is not None and bool(launch.speculative.adaptive)
        last = engine_named(launch.engine if launch else None)
        tick = Tick(await self._reader.metrics(last, adaptive=adaptive))
        if tick.metrics.engine is not last:
            self._info = None  # the engine before told it
        return tick

    def _notice_gap(self, tick: Tick) -> None:
        state = tick.metrics.health.state
        is_off = state is HealthState.DISABLED
        if tick.metrics.nothing_serves:
            self._down_ms = tick.time_ms
        if state not in READ and not (is_off and self._was_off):
            self._must_ask = self._gap = True
            self._info = None
        if state in READ and self._was_off:  # --enable-metrics cannot be set without a restart
            self._must_ask = self._gap = True
        self._was_off = is_off

    async def _doubt(self, tick: Tick, known: Known | None) -> Doubt:
        """Take the values away while they may be of several processes."""
        if tick.mapped is None:
            return Doubt.NONE
        engine = tick.metrics.engine.name
        doubt = self._watch.judge(tick.mapped.counters, gap=self._gap, engine=engine)
        if self._watch.fell_now and await self._is_unseen(tick, known) and doubt is Doubt.SEVERAL:
            doubt = self._watch.hold()
        if doubt in DOUBTFUL:
            tick.metrics, tick.plain = doubted(tick.metrics, doubt), None
        elif doubt is not Doubt.NONE:
            self._must_ask = self._gap = True
        return doubt

    async def _is_unseen(self, tick: Tick, known: Known | None) -> bool:
        """Ask the engine which process it is; return whether it is one that never answered before."""
        told = (await tick.metrics.engine.info(self._reader)).told
        if told is None or known is None:
            return False
        process = told.identity.process
        is_unseen = process not in (known.identity.process, *self._processes)
        self._processes = (*self._processes, known.identity.process, process)[-MAX_PROCESSES:]
        return is_unseen

    async def _ask_further(self, tick: Tick, known: Known | None) -> None:
        mapped, is_due = tick.mapped, self._info_due.now()
        different = known is not None and mapped is not None and launches.looks_different(known, mapped)
        fell = tick.plain is not None and tick.plain.all_fell
        tick.is_urgent = known is None or self._must_ask or self._gap or different or fell
        if is_due or self._must_ask or different or fell:
            await self._ask_info(tick)
        if known is not None and self._loads_offered and self._loads_due.now():
            await self._ask_loads(tick, known)

    async def _ask_info(self, tick: Tick) -> None:
        tick.info = await tick.metrics.engine.info(self._reader)
        passing = tick.info.health.state in PASSING
        self._info_due.restart(RETRY_INFO_SECONDS if passing else None)
        if tick.info.told is not None:
            self._info = tick.info.told
            self._must_ask = False
            self._deferrals = 0
        elif not passing:
            self._info = None
            self._must_ask = False

    async def _ask_loads(self, tick: Tick, known: Known) -> None:
        tick.loads = await tick.metrics.engine.loads(self._reader, tick.mapped, known.launch)
        self._loads_due.restart()
        offered = tick.loads is not None and tick.loads.health.state is not HealthState.NOT_OFFERED
        self._loads_offered = offered

    def _is_engine(self, tick: Tick, known: Known | None) -> bool:
        """Return whether what answers has said that it is an engine."""
        said = (tick.info and tick.info.told) or self._info
        return said is not None or (known is not None and known.identity.source == "server_info")

    # What it means

    def _conclude(self, tick: Tick, before: Committed) -> Committed | None:
        """Store one batch and return the new state; None when it was not stored."""
        verdict = self._verdict(tick, before)
        after, found = self._outcome(tick, before, verdict)
        try:
            is_new = self._journal.store(after, found)
        except NotStoredError:
            self._gap = True
            return None
        if not is_new:
            self._info = None  # the other may have learnt of another launch since
            return None  # what the other process stored is where the next scrape goes on
        if verdict is not None:
            self._gap = self._gap and tick.mapped is None and self._must_ask
            if verdict.change is not Change.SAME:
                self._loads_offered = True
                log.info("launch", target=self.target.name, reason=verdict.known.launch.reason)
        self._journal.tell(tick.metrics.health.state.value, tick.metrics.health.detail)
        if self._board is not None and after.known is not None:
            self._board.note(self.target, after.known.launch, metrics_of(tick), tick.time_ms)
        return after

    def _verdict(self, tick: Tick, before: Committed) -> Verdict | None:
        """Return which launch the values belong to; None while that cannot be said."""
        known = before.known
        asked = tick.info
        info = asked.told if asked else None
        if info is None and not tick.is_urgent:
            return Verdict(change=Change.SAME, known=known) if known else None
        if asked is not None and info is None and asked.health.state in PASSING and self._may_defer():
            return None
        info = info or self._info
        evidence = tick.evidence(known, gap=self._gap)
        if info is not None:
            return launches.by_info(known, info, evidence, tick.time_ms)
        self._must_ask = False
        if tick.mapped is not None:
            return launches.by_metrics(known, tick.mapped, evidence, tick.time_ms)
        return Verdict(change=Change.SAME, known=known) if known else None

    def _may_defer(self) -> bool:
        self._deferrals += 1
        return self._deferrals <= MAX_DEFERRALS

    def _outcome(
        self, tick: Tick, before: Committed, verdict: Verdict | None
    ) -> tuple[Committed, tuple[Observation, ...]]:
        """Return the state after this scrape, and what is stored with it."""
        known, memory = before.known, before.memory
        found = list[Observation]()
        if verdict is not None:
            known = launches.with_models(verdict.known, tick.mapped) if tick.mapped else verdict.known
            restarted = verdict.change is Change.RESTART
            grown = tick.plain
            if restarted:
                grown = growth(tick, memory, fresh_process=True, down_ms=self._down_ms)
            found = measurements(tick, verdict, grown)
            memory = grown.memory if grown else memory
        elif tick.plain is not None and memory.scraped_ms is None:
            memory = tick.plain.memory  # the baseline needs no launch
        after = Committed(before.sequence + 1, memory, known)
        return after, (*found, *health_observations(tick, known))

    def _resume(self) -> Committed | None:
        committed = self._journal.resume()
        if committed is None:
            self._must_ask = self._gap = True  # nobody looks at the target meanwhile
        return committed
