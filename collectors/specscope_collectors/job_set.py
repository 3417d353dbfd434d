"""The jobs of one process: made from their plans, kept as long as their plan stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.job_loop import JobLoop, close_job
from specscope_collectors.keepers import Keepers
from specscope_collectors.plan import JobPlan


class JobSetError(ValueError):
    """Jobs that cannot be made as configured; ``problems`` names file, table, reason and remedy of each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Made:
    """One plan and its jobs."""

    plan: JobPlan
    jobs: tuple[Job, ...]


class JobSet:
    """Used on one event loop."""

    def __init__(self, context: Callable[[], JobContext]) -> None:
        self._context = context
        self._made: list[Made] = []
        self._loops: dict[str, JobLoop] = {}
        self._unbegun: dict[int, Job] = {}
        """Made, but cancelled or waiting before its loop began: nobody else would close it."""
        self._keepers: Keepers[Job] = Keepers(self._keep)

    @property
    def names(self) -> list[str]:
        """Names of the jobs that are kept now."""
        return sorted(self._keepers.kept)

    async def replace(self, plans: Sequence[JobPlan]) -> None:
        """Keep exactly ``plans``, those that stay undisturbed. Raises `JobSetError`: nothing changes."""
        before = {id(job) for each in self._made for job in each.jobs}
        self._made = await make(plans, self._made, self._context())
        wanted = [job for each in self._made for job in each.jobs]
        self._unbegun |= {id(job): job for job in wanted if id(job) not in before}
        self._keepers.reconcile({job.name: job for job in wanted})
        await self._close_unbegun({id(job) for job in wanted})

    def wake(self, prefix: str) -> None:
        """Let jobs whose name begins so do their next step now."""
        for name, loop in self._loops.items():
            if name.startswith(prefix):
                loop.wake()

    async def close(self, timeout_seconds: float) -> None:
        """Cancel and close all jobs."""
        self._made = []
        await self._keepers.close(timeout_seconds)
        await self._close_unbegun(set())

    async def _close_unbegun(self, wanted: set[int]) -> None:
        for one in [one for one in self._unbegun if one not in wanted]:
            await close_job(self._unbegun.pop(one))

    async def _keep(self, job: Job, place: float) -> None:
        self._unbegun.pop(id(job), None)
        loop = self._loops[job.name] = JobLoop(job)
        try:
            await loop.run()
        finally:
            if self._loops.get(job.name) is loop:
                del self._loops[job.name]


async def make(plans: Sequence[JobPlan], kept: Sequence[Made], context: JobContext) -> list[Made]:
    """Return all plans with their jobs, those of ``kept`` where the plan is the same.

    Raises `JobSetError` after closing what was made in vain.
    """
    left, made, new = list(kept), list[Made](), list[Job]()
    problems: list[str] = []
    for plan in plans:
        same = next((each for each in left if each.plan == plan), None)
        if same is not None:
            left.remove(same)
            made.append(same)
            continue
        try:
            fresh = Made(plan, tuple(plan.kind.build(plan.config, _of(plan, context))))
        except (JobError, ValueError, OSError) as error:
            problems.append(f"{plan.where}: {error}")
        else:
            made.append(fresh)
            new += fresh.jobs
    problems += _twins(made)
    if problems:
        for job in new:
            await close_job(job)
        raise JobSetError(problems)
    return made


def _of(plan: JobPlan, context: JobContext) -> JobContext:
    return context if plan.options is None else replace(context, options=plan.options)


def _twins(made: Sequence[Made]) -> list[str]:
    """Two jobs of one name would store under one identity."""
    where: dict[str, str] = {}
    problems = []
    for each in made:
        for job in each.jobs:
            if job.name in where:
                problems.append(
                    f"{each.plan.where}: {job.name} is collected already by {where[job.name]}; leave one out"
                )
            where.setdefault(job.name, each.plan.where)
    return problems
