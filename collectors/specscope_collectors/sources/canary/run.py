"""One run: every prompt of the set, and what became of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import httpx

from specscope_collectors.clock import Clock
from specscope_collectors.observations import HealthState, RequestRecord, SourceHealth
from specscope_collectors.sources.canary import SOURCE
from specscope_collectors.sources.canary.asking import COMPLETIONS, GENERATE, AskError, Asking, ask
from specscope_collectors.sources.canary.prompts import Prompt

REMEDY = "compare with one request by curl; the next run is tried after a while"


@dataclass(slots=True)
class Run:
    """Outcome of one run."""

    records: list[RequestRecord] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    """Reason → prompts."""

    def health(self, asking: Asking, now_ms: int) -> SourceHealth:
        """Return how the run went."""
        good, bad = len(self.records), self.failures.total()
        state = HealthState.OK if not bad else HealthState.PARTIAL if good else HealthState.HTTP_ERROR
        why = "; ".join(f"{count} × {reason}" for reason, count in self.failures.most_common(3))
        return SourceHealth(
            source=SOURCE,
            time_ms=now_ms,
            state=state,
            url=asking.base_url + (GENERATE if asking.is_sglang else COMPLETIONS),
            duration_seconds=max(0, now_ms - asking.started_ms) / 1_000,
            series=good,
            refused=bad,
            detail=f"{bad} of {good + bad} prompts got no usable answer: {why}"[:500] if bad else "",
            remedy=REMEDY if bad else "",
        )


async def run_once(client: httpx.AsyncClient, asking: Asking, concurrency: int, clock: Clock) -> Run:
    """Ask all prompts in their order, at most ``concurrency`` at a time; gives up when the first ones fail.

    A server that is down is not asked 200 times.
    """
    run, gate = Run(), asyncio.Semaphore(concurrency)

    async def one(prompt: Prompt) -> None:
        async with gate:
            if not run.records and run.failures.total() >= 3:
                run.failures["not asked, since nothing answered"] += 1
                return
            try:
                run.records.append(await ask(client, asking, prompt, clock))
            except AskError as error:
                run.failures[str(error)] += 1

    await asyncio.gather(*(one(prompt) for prompt in asking.asked.prompts))
    return run
