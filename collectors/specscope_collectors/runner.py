"""Runs all collectors of one process on a thread of their own; none waits for another."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from specscope_collectors.board import Board
from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.job_set import JobSet, JobSetError
from specscope_collectors.keepers import Keepers
from specscope_collectors.observations import Sink, Target
from specscope_collectors.plan import JobPlan, Watching
from specscope_collectors.scraping import Scraping

log = structlog.get_logger("specscope.collector")

WORKERS = 4
"""Threads that parse and store; several, so that a slow store does not stop the parsing."""
LOOKUPS = 256
"""Threads for name look-ups, made as needed; a resolver that hangs must not starve the other targets."""
STOP_SECONDS = 8.0


class Runner:
    """Starts and stops the collection from targets and jobs into ``sink``; both may change meanwhile."""

    def __init__(
        self,
        targets: Sequence[Target | Watching],
        sink: Sink,
        options: CollectorOptions,
        clock: Clock = system_clock,
        *,
        jobs: Sequence[JobPlan] = (),
    ) -> None:
        self.board = Board()
        self._sink = sink
        self._options = options
        self._clock = clock
        self._targets = self._keyed(targets)
        self._jobs = tuple(jobs)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Task[None] | None = None
        self._ready = threading.Event()
        self._refused: JobSetError | None = None
        self._scraping: Scraping | None = None
        self._watched: Keepers[Watching] | None = None
        self._doing: JobSet | None = None

    # From any thread

    def start(self) -> None:
        """Begin in the background; returns at once.

        Raises RuntimeError when already started, `JobSetError` for jobs that cannot be as configured.
        """
        if self._thread is not None:
            raise RuntimeError("this runner is already started")
        self._ready.clear()
        self._refused = None
        self._thread = threading.Thread(target=self._run, name="specscope-collectors", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._refused is not None:
            self._thread.join()
            self._thread = None
            raise self._refused

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Cancel what is in flight and wait for the thread; a batch being stored is finished."""
        thread, loop, work = self._thread, self._loop, self._work
        if thread is None:
            return
        if loop is not None and work is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                loop.call_soon_threadsafe(work.cancel)
        thread.join(timeout_seconds)
        self._thread = None

    @property
    def is_running(self) -> bool:
        """True between `start` and `stop`, as long as the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def targets(self) -> list[Target]:
        """What is watched (or will be, once started), by name."""
        return [self._targets[name].target for name in sorted(self._targets)]

    def set_targets(self, targets: Sequence[Target | Watching]) -> None:
        """Watch exactly these from now on; those that stay the same are not disturbed.

        Of several with one name the first is taken. One that is no longer listed is said to be gone.
        """
        self._targets = self._keyed(targets)
        self._soon(self._reconcile)

    def part(self, watching: Watching) -> None:
        """Say that a target of an earlier run is gone, unless it is watched."""

        def part() -> None:
            if self._watched is not None:
                self._watched.part(watching.target.name, watching)

        self._soon(part)

    def set_concurrency(self, concurrency: int) -> None:
        """Read so many targets at the same time, from the next scrape of each."""

        def change() -> None:
            if self._scraping is not None and self._scraping.lanes.concurrency != concurrency:
                self._scraping.use_lanes(concurrency)

        self._soon(change)

    def wake(self, prefix: str = "") -> None:
        """Let the jobs whose name begins so do their next step now. May be called by a signal handler."""

        def wake() -> None:
            if self._doing is not None:
                self._doing.wake(prefix)

        self._soon(wake)

    async def set_jobs(self, jobs: Sequence[JobPlan]) -> None:
        """Do exactly these jobs from now on; on the runner's loop. Raises `JobSetError`: nothing changed."""
        if self._doing is not None:
            await self._doing.replace(jobs)
        self._jobs = tuple(jobs)

    def scrape_once(self) -> None:
        """Scrape every target once, in this thread, and return when all outcomes are stored."""

        async def once(scraping: Scraping, watching: Watching) -> None:
            async with scraping.collector(watching) as collector:
                await collector.scrape()

        async def all_once() -> None:
            async with self._opened() as scraping:
                await asyncio.gather(*(once(scraping, each) for each in self._targets.values()))

        asyncio.run(all_once())

    # On the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            log.info("collectors stopped")
        except JobSetError as error:
            self._refused = error
        except Exception as error:  # a bug: say so, since nobody else would notice
            log.error("collectors ended", error=repr(error))
            raise
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._work = asyncio.get_running_loop(), asyncio.current_task()
        async with self._opened() as scraping:
            watched, doing = Keepers(scraping.keep, scraping.farewell), self._job_set(scraping)
            try:
                await doing.replace(self._jobs)
                self._scraping, self._watched, self._doing = scraping, watched, doing
                self._reconcile()
                self._ready.set()
                await asyncio.Event().wait()
            finally:
                self._scraping = self._watched = self._doing = None
                await asyncio.gather(watched.close(STOP_SECONDS), doing.close(STOP_SECONDS))

    def _reconcile(self) -> None:
        if self._watched is None:
            return
        change = self._watched.reconcile(self._targets)
        if change.added or change.changed or change.removed:
            counts = {name: len(getattr(change, name)) for name in ("added", "changed", "removed")}
            log.info("targets", watched=len(self._targets), **counts)

    def _job_set(self, scraping: Scraping) -> JobSet:
        context = JobContext(
            sink=self._sink,
            options=self._options,
            clock=self._clock,
            monotonic=time.monotonic,
            pool=scraping.pool,
            board=self.board,
        )
        return JobSet(lambda: context)

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[Scraping]:
        """Open what all targets share: a pool of workers."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(LOOKUPS, "specscope-lookup"))
        pool = ThreadPoolExecutor(WORKERS, "specscope-work")
        try:
            yield Scraping(self._sink, self._clock, self.board, pool, self._options.concurrency)
        finally:
            pool.shutdown(wait=True)

    def _soon(self, work: Callable[[], None]) -> None:
        """Do something on the loop, if it runs; from whatever thread."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(work)

    def _keyed(self, targets: Sequence[Target | Watching]) -> dict[str, Watching]:
        found: dict[str, Watching] = {}
        for each in targets:
            one = each if isinstance(each, Watching) else Watching(target=each, options=self._options)
            found.setdefault(one.target.name, one)
        self.board.expect(found)
        return found
