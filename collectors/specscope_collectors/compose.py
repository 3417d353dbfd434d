"""Puts a plan together: targets, jobs and discoveries, one runner for all of them."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.collect_file import CollectFile
from specscope_collectors.departures import Departures
from specscope_collectors.discoveries import DiscoveryContext
from specscope_collectors.discovery_job import DiscoveryJob, Surroundings
from specscope_collectors.job import Job, JobContext
from specscope_collectors.jobs import JobKind
from specscope_collectors.observations import Sink
from specscope_collectors.own_health import OwnHealth
from specscope_collectors.plan import CollectPlan, DiscoveryPlan, JobPlan
from specscope_collectors.reload_job import SOURCE as FILE
from specscope_collectors.reload_job import ReloadJob
from specscope_collectors.roster import Roster
from specscope_collectors.runner import Runner


def compose(plan: CollectPlan, sink: Sink, clock: Clock = system_clock) -> Runner:
    """Return a runner, not yet started, that collects what ``plan`` says and follows its file.

    Its `Runner.start` raises `JobSetError` when a job cannot be as configured.
    """
    return _Composition(plan, sink, clock).runner


@contextmanager
def reloading_on_hangup(runner: Runner) -> Iterator[None]:
    """Let SIGHUP read the file and ask the discoveries at once; only in the main thread."""
    before = signal.signal(signal.SIGHUP, lambda *_: runner.wake())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@dataclass(frozen=True, slots=True)
class Named:
    """A discovery under its name: the first of a name keeps it, further ones are numbered."""

    name: str
    plan: DiscoveryPlan


class _Composition:
    def __init__(self, plan: CollectPlan, sink: Sink, clock: Clock) -> None:
        self._plan = plan
        self._sink = sink
        self._roster = Roster(self._tell)
        # Kinds are compared by identity of their functions: one each, so that equal plans stay undisturbed.
        self._file_kind = JobKind(FILE, CollectFile, self._build_reload)
        self._discovery_kind = JobKind("discover", DiscoveryPlan, self._build_discovery)
        self._runner: Runner | None = None
        jobs = self._jobs(plan)
        self._enlist(plan)
        self._runner = self.runner = Runner(plan.targets, sink, plan.options, clock, jobs=jobs)

    def _tell(self, targets: Sequence[Any]) -> None:
        if self._runner is not None:
            self._runner.set_targets(targets)

    def _enlist(self, plan: CollectPlan) -> None:
        self._roster.set_order((FILE, *(each.name for each in named(plan.discoveries))))
        self._roster.set(FILE, plan.targets)

    def _jobs(self, plan: CollectPlan) -> list[JobPlan]:
        file = plan.file
        own = [] if file is None else [JobPlan(kind=self._file_kind, config=file, where=str(file.path))]
        found = [
            JobPlan(kind=self._discovery_kind, config=each, where=each.plan.where)
            for each in named(plan.discoveries)
        ]
        return [*own, *found, *plan.jobs]

    async def _apply(self, plan: CollectPlan) -> None:
        """Take a changed plan over, as a whole or not at all. Raises `JobSetError`."""
        await self.runner.set_jobs(self._jobs(plan))
        self.runner.set_concurrency(plan.options.concurrency)
        self._enlist(plan)

    def _build_reload(self, file: CollectFile, context: JobContext) -> list[Job]:
        health = OwnHealth(context.sink, self._plan.collector, FILE)
        departures = Departures(self._roster, self.runner.part, str(file.path))
        return [ReloadJob(file, self._apply, health, departures, context.pool, context.clock)]

    def _build_discovery(self, config: Named, context: JobContext) -> list[Job]:
        plan = config.plan
        discovery = plan.kind.build(plan.config, DiscoveryContext(options=plan.options))
        around = Surroundings(
            roster=self._roster,
            health=OwnHealth(context.sink, self._plan.collector, config.name),
            pool=context.pool,
            clock=context.clock,
            monotonic=context.monotonic,
        )
        return [DiscoveryJob(config.name, plan, discovery, around)]


def named(plans: Sequence[DiscoveryPlan]) -> list[Named]:
    """Return the discoveries under stable names: ``discover_dns:NAME``, a number behind repeated ones."""
    seen: dict[str, int] = {}
    found = []
    for plan in plans:
        text = plan.config.name or plan.kind.build(plan.config, DiscoveryContext(options=plan.options)).asked
        name = f"discover_{plan.kind.name}:{text}"[:180]
        seen[name] = seen.get(name, 0) + 1
        found.append(Named(name if seen[name] == 1 else f"{name}#{seen[name]}", plan))
    return found
