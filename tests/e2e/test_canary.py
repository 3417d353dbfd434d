"""The canary against a real engine: it counts what `/generate` counts, and equal work gives equal results."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.collectors.runner.engine import MemorySink
from tests.sglang_cpu.oracle import count_requests
from tests.support.rig import Request, RunningRig

from specscope_collectors.board import Board, Watched
from specscope_collectors.clock import system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.observations import CanaryLabel, Launch, RequestRecord, Target
from specscope_collectors.sources.canary.job import Config, build
from specscope_collectors.sources.canary.prompts import SHIPPED

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
LENGTH = 24


def run_once(engine: RunningRig, key: str, sink: MemorySink) -> list[RequestRecord]:
    """Run the canary for a launch that has settled; return its records."""
    board, before = Board(), len(sink.batches)
    launch = Launch(key=key, time_ms=system_clock() - 3_600_000, engine="sglang")
    board.tell(Watched(Target(name="rig", base_url=engine.base_url), launch, frozenset()))

    async def go() -> None:
        with ThreadPoolExecutor(1) as pool:
            context = JobContext(
                sink=sink, options=CollectorOptions(), clock=system_clock, monotonic=time.monotonic,
                pool=pool, board=board,
            )  # fmt: skip
            [job] = build(Config(server="rig", max_new_tokens=LENGTH), context)
            try:
                await job.step()
            finally:
                await job.close()

    asyncio.run(go())
    batches = sink.batches[before:]
    return [record for batch in batches for record in batch.observations if isinstance(record, RequestRecord)]


def test_two_runs_agree_with_each_other_and_with_the_oracle(shared_rig: RunningRig) -> None:
    sink = MemorySink()
    first, second = run_once(shared_rig, "a1", sink), run_once(shared_rig, "b2", sink)
    assert [record.labels[CanaryLabel.PROMPT] for record in first] == [prompt.id for prompt in SHIPPED]
    for one, other in zip(first, second, strict=True):
        assert one.labels[CanaryLabel.OUTPUT] == other.labels[CanaryLabel.OUTPUT]
        assert one.accepted_histogram == other.accepted_histogram
    answers = shared_rig.generate([Request(prompt.text or "", LENGTH) for prompt in SHIPPED])
    expected = count_requests((answer["output_ids"] for answer in answers), shared_rig.num_steps)
    histograms = [record.accepted_histogram or () for record in first]
    assert tuple(map(sum, zip(*histograms, strict=True))) == expected.histogram
