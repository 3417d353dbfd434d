"""What would be collected, without collecting it: every discovery is asked once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from specscope_collectors.board import Board
from specscope_collectors.clock import system_clock
from specscope_collectors.compose import Named, named
from specscope_collectors.discoveries import DiscoveryContext, DiscoveryError
from specscope_collectors.discovery_job import read_listed
from specscope_collectors.discovery_words import servers
from specscope_collectors.job import JobContext
from specscope_collectors.job_loop import close_job
from specscope_collectors.job_set import Made, make
from specscope_collectors.observations import Batch, Resume
from specscope_collectors.plan import CollectPlan, Watching
from specscope_collectors.roster import merge

MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Look:
    """What one discovery said."""

    name: str
    found: tuple[Watching, ...] = ()
    refused: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be collected now."""

    targets: tuple[Watching, ...]
    jobs: tuple[str, ...]
    looks: tuple[Look, ...]

    @property
    def is_good(self) -> bool:
        """Whether every discovery answered and nothing was refused."""
        return not any(look.error or look.refused for look in self.looks)


def preview(plan: CollectPlan) -> Preview:
    """Ask all discoveries once and make all jobs without stepping them. Raises `JobSetError`."""
    return asyncio.run(_preview(plan))


async def _preview(plan: CollectPlan) -> Preview:
    with ThreadPoolExecutor(1, "specscope-preview") as pool:
        made = await make(plan.jobs, [], _context(plan, pool))
        names = _names(made)
        for each in made:
            for job in each.jobs:
                await close_job(job)
    looks = await asyncio.gather(*(_look(each) for each in named(plan.discoveries)))
    lists = {"": plan.targets, **{look.name: look.found for look in looks}}
    merged = merge(lists)
    told = [Look(e.name, e.found, (*e.refused, *merged.refused.get(e.name, ())), e.error) for e in looks]
    return Preview(merged.targets, names, tuple(told))


def _names(made: list[Made]) -> tuple[str, ...]:
    return tuple(job.name for each in made for job in each.jobs)


async def _look(each: Named) -> Look:
    plan = each.plan
    discovery = plan.kind.build(plan.config, DiscoveryContext(options=plan.options))
    try:
        answer = await discovery.look()
    except DiscoveryError as error:
        return Look(each.name, error=f"{error}{'; ' + error.remedy if error.remedy else ''}")
    finally:
        await discovery.close()
    known, refused = read_listed(answer, plan.config, plan.options.loopback_name)
    found = tuple(
        Watching(target=one.target, options=plan.options, labels=one.labels, origin=each.name)
        for one in known
    )
    return Look(each.name, found, tuple(refused))


class _NoSink:
    """Stores nothing: a preview takes no step."""

    def resume(self, collector_id: str) -> Resume:
        return Resume()

    def apply(self, batch: Batch) -> bool:
        return True


def _context(plan: CollectPlan, pool: ThreadPoolExecutor) -> JobContext:
    return JobContext(
        sink=_NoSink(),
        options=plan.options,
        clock=system_clock,
        monotonic=time.monotonic,
        pool=pool,
        board=Board(),
    )


def _plain(text: str) -> str:
    """Return a label as a terminal may show it: short, and without what moves the cursor."""
    shown = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
    return shown if shown.isprintable() else ascii(shown)[1:-1]


def preview_lines(seen: Preview) -> Iterator[str]:
    """Return what would be collected, in words, line by line."""
    yield servers(len(seen.targets))
    for watching in sorted(seen.targets, key=lambda one: one.target.name):
        labels = "".join(
            f" {_plain(name)}={_plain(value)}" for name, value in sorted(watching.labels.items())
        )
        key = ", with a key" if watching.options.api_key else ""
        every = f"every {watching.options.scrape_interval_seconds:g} s"
        yield f"  {watching.target.name}  {watching.target.base_url}  ({every}{key}){labels}"
    yield f"{len(seen.jobs)} job{'s' * (len(seen.jobs) != 1)}"
    yield from (f"  {name}" for name in sorted(seen.jobs))
    for look in seen.looks:
        yield f"{look.name}: {look.error or servers(len(look.found))}"
        yield from (f"  refused: {words}" for words in look.refused)
