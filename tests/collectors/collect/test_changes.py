"""The set of watched servers changes thousands of times while it is scraped, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from tests.collectors.collect.jobs import Config as JobConfig
from tests.collectors.collect.jobs import Workshop, wait_until
from tests.collectors.fetch.servers import hang, serving
from tests.collectors.runner.engine import PATIENT_SECONDS, Engine, MemorySink

from specscope_collectors.config import CollectorOptions, parse_target
from specscope_collectors.observations import HealthState
from specscope_collectors.plan import Watching
from specscope_collectors.runner import Runner

FAST = CollectorOptions(scrape_interval_seconds=0.1, scrape_timeout_seconds=PATIENT_SECONDS)
CHANGES = 2_000


class Forgetful(MemorySink):
    """Keeps the newest batches only, so that what grows is not the sink."""

    def apply(self, batch: object) -> bool:
        stored = super().apply(batch)  # type: ignore[arg-type]
        del self.batches[:-50]
        return stored


def tasks_of(runner: Runner) -> int:
    assert runner._loop is not None
    return len(asyncio.all_tasks(runner._loop))


def change(runner: Runner, url: str, times: int) -> None:
    """Let up to three servers, of which nothing is known, come and go beside one that stays."""
    always = parse_target(f"always={url}")
    for number in range(times):
        others = (parse_target(f"t{other}=127.0.0.1:{9 + other}") for other in range(number % 4))
        runner.set_targets([always, *others])
        if number % 50 == 0:
            threading.Event().wait(0.001)
    runner.set_targets([always])


def test_thousands_of_changes_leave_nothing_behind() -> None:
    sink = Forgetful()
    with serving(Engine()) as server:
        runner = Runner([], sink, FAST)  # patient: a server that seems away is asked for its launch again
        runner.start()
        try:
            change(runner, server.url, CHANGES // 4)
            wait_until(lambda: tasks_of(runner) == 2 and "/server_info" in server.paths())
            gc.collect()
            objects, threads = len(gc.get_objects()), threading.active_count()
            change(runner, server.url, CHANGES)
            wait_until(lambda: tasks_of(runner) == 2)
            gc.collect()
            assert len(gc.get_objects()) - objects < 1_000
            assert threading.active_count() - threads < 20  # pools make their threads as needed
            assert server.paths().count("/server_info") == 1  # it was never begun anew
        finally:
            runner.stop()


def test_a_server_that_hangs_holds_up_no_change() -> None:
    slow = CollectorOptions(scrape_interval_seconds=0.1, scrape_timeout_seconds=600)
    sink = MemorySink()
    with serving(hang) as stuck, serving(Engine()) as good:
        runner = Runner([parse_target(f"stuck={stuck.url}")], sink, slow)
        runner.start()
        try:
            wait_until(lambda: bool(stuck.requests))
            runner.set_targets([parse_target(f"good={good.url}")])
            wait_until(lambda: {HealthState.OK, HealthState.GONE} <= set(sink.states()))
            assert [target.name for target in runner.targets] == ["good"]
        finally:
            runner.stop()


def test_a_batch_that_is_being_stored_is_finished_before_the_next_collector_begins() -> None:
    class Slow(MemorySink):
        """Takes its time to store, and notices when two of one collector overlap."""

        busy: frozenset[str] = frozenset()
        overlaps = 0

        def apply(self, batch: object) -> bool:
            name: str = batch.collector_id  # type: ignore[attr-defined]
            Slow.overlaps += name in Slow.busy
            Slow.busy |= {name}
            threading.Event().wait(0.15)
            Slow.busy -= {name}
            return super().apply(batch)  # type: ignore[arg-type]

    sink = Slow()
    with serving(Engine()) as server:
        runner = Runner([], sink, FAST)
        runner.start()
        try:
            for number in range(6):
                interval = 0.01 + number / 10_000  # a changed option is a changed target
                options = CollectorOptions(
                    scrape_interval_seconds=interval, scrape_timeout_seconds=PATIENT_SECONDS
                )
                runner.set_targets([Watching(target=parse_target(server.url), options=options)])
                wait_until(lambda: not Slow.busy)
                wait_until(lambda: bool(Slow.busy))  # it changes while a batch is being stored
        finally:
            runner.stop()
    sequences = [batch.sequence for batch in sink.batches]
    assert sequences == list(range(1, len(sequences) + 1))
    assert Slow.overlaps == 0
    assert len(sink.launches()) == 1


@pytest.mark.parametrize("running", [True, False])
def test_targets_and_jobs_may_be_set_before_while_and_after(running: bool) -> None:
    shop, sink = Workshop(), MemorySink()
    with serving(Engine()) as server:
        runner = Runner([parse_target("x=127.0.0.1:9")], sink, FAST, jobs=shop.plans(JobConfig(name="j")))
        if running:
            runner.start()
        runner.set_targets([parse_target(f"y={server.url}"), parse_target("y=127.0.0.1:10")])
        runner.set_concurrency(2)
        runner.wake()
        if not running:
            runner.start()
        wait_until(lambda: any(batch.target.name == "y" for batch in sink.batches))
        assert [(target.name, target.base_url) for target in runner.targets] == [("y", server.url)]
        runner.stop()
        runner.set_targets([])
        runner.wake()
    assert [job.closed for job in shop.made] == [1]
