"""Jobs beside each other: a failing one ends nobody, a stopped one is closed, one that stays is let alone."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest
import structlog
from tests.collectors.collect.jobs import Config, Counting, Workshop, context, names, until, wait_until
from tests.collectors.runner.engine import MemorySink

from specscope_collectors import job_loop
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job_loop import JobLoop
from specscope_collectors.job_set import JobSet, JobSetError
from specscope_collectors.runner import Runner


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_loop, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(job_loop, "LONGEST_PAUSE_SECONDS", 0.01)


def test_a_failing_job_is_logged_once_and_goes_on_while_others_work() -> None:
    shop, sink = Workshop(), MemorySink()
    plans = shop.plans(Config(name="bad", fails=30), Config(name="good"))
    runner = Runner([], sink, CollectorOptions(), jobs=plans)
    with structlog.testing.capture_logs() as logs:
        runner.start()
        try:
            bad, good = shop.made
            wait_until(lambda: bad.steps >= 35 and good.steps >= 20)
        finally:
            runner.stop()
    told = [entry for entry in logs if entry["event"] == "job failed"]
    assert [(entry["job"], entry["error"]) for entry in told] == [("bad", "RuntimeError('a bug')")]
    assert [entry["failures"] for entry in logs if entry["event"] == "job works again"] == [30]
    assert (bad.closed, good.closed) == (1, 1)


def test_pauses_after_errors_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_loop, "FIRST_PAUSE_SECONDS", 1.0)
    monkeypatch.setattr(job_loop, "LONGEST_PAUSE_SECONDS", 60.0)
    loop = JobLoop(Counting(Config(name="bad", fails=100)))

    async def pauses() -> list[float]:
        return [await loop._step() for _ in range(100)]

    found = asyncio.run(pauses())
    for number, seconds in enumerate(found):
        longest = min(2.0**number, 60.0)
        assert longest / 2 <= seconds <= longest


@pytest.mark.parametrize("answer", [math.nan, math.inf])
def test_a_time_that_is_no_time_is_an_error(answer: float) -> None:
    loop = JobLoop(Counting(Config(name="odd", every=answer)))
    assert asyncio.run(loop._step()) <= 0.01


def test_what_is_cancelled_inside_a_job_does_not_end_it() -> None:
    class Inner(Counting):
        async def step(self) -> float:
            await super().step()
            raise asyncio.CancelledError

    async def go() -> Inner:
        job = Inner(Config(name="inner"))
        task = asyncio.create_task(JobLoop(job).run())
        await until(lambda: job.steps >= 3)
        task.cancel()
        await asyncio.wait([task])
        return job

    assert asyncio.run(go()).closed == 1


def test_a_job_that_does_not_close_does_not_hold_up_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_loop, "CLOSE_SECONDS", 0.02)

    class Clinging(Counting):
        async def close(self) -> None:
            await asyncio.Event().wait()

    async def go() -> bool:
        job = Clinging(Config(name="clinging"))
        task = asyncio.create_task(JobLoop(job).run())
        await until(lambda: job.steps >= 1)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)
        return bool(done)

    assert asyncio.run(go())


def test_a_woken_job_does_not_sleep_on() -> None:
    async def go() -> None:
        shop = Workshop()
        jobs = JobSet(context)
        await jobs.replace(shop.plans(Config(name="file:a", every=3600), Config(name="other", every=3600)))
        await until(lambda: all(job.steps == 1 for job in shop.made))
        jobs.wake("file:")
        await until(lambda: shop.made[0].steps == 2)
        assert shop.made[1].steps == 1
        await jobs.close(5)

    asyncio.run(go())


def test_plans_that_stay_are_let_alone_whatever_their_place() -> None:
    async def go() -> None:
        shop = Workshop()
        jobs = JobSet(context)
        a, b, c = (Config(name=name) for name in "abc")
        await jobs.replace(shop.plans(a, b))
        first = {job.name: job for job in shop.made}
        await until(lambda: all(job.steps for job in shop.made))
        await jobs.replace(shop.plans(c, b, Config(name="a", every=0.02)))
        assert names(shop.made) == ["a", "a", "b", "c"]
        await until(lambda: first["a"].closed == 1 and all(job.steps for job in shop.made))
        assert first["b"].closed == 0
        await jobs.close(5)
        assert [job.closed for job in shop.made] == [1, 1, 1, 1]
        assert not any(job.overlapped for job in shop.made)

    asyncio.run(go())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Config(name="b", is_wrong=True), "f.toml: [[counting]] 2: b cannot be"),
        (
            Config(name="a", every=7),
            "f.toml: [[counting]] 2: a is collected already by f.toml: [[counting]] 1",
        ),
    ],
)
def test_plans_that_cannot_be_change_nothing(wrong: Config, reason: str) -> None:
    async def go() -> None:
        shop = Workshop()
        jobs = JobSet(context)
        kept = Config(name="a")
        await jobs.replace(shop.plans(kept))
        with pytest.raises(JobSetError, match="counting") as caught:
            await jobs.replace(shop.plans(kept, wrong, Config(name="new")))
        assert caught.value.problems[0].startswith(reason)
        assert jobs.names == ["a"]
        assert [job.closed for job in shop.made] == [0] + [1] * (len(shop.made) - 1)
        await jobs.close(5)

    asyncio.run(go())


def test_changed_options_make_a_job_anew_with_them() -> None:
    async def go() -> None:
        shop = Workshop()
        jobs = JobSet(context)
        (plan,) = shop.plans(Config(name="a"))
        for interval in (1, 1, 2):
            options = CollectorOptions(scrape_interval_seconds=interval)
            await jobs.replace([replace(plan, options=options)])
        assert [each.scrape_interval_seconds for each in shop.options] == [1, 2]
        await jobs.close(5)

    asyncio.run(go())


def test_a_job_that_never_began_is_closed_too() -> None:
    async def go() -> None:
        shop = Workshop()
        jobs = JobSet(context)
        await jobs.replace(shop.plans(Config(name="a")))
        await jobs.replace([])
        await jobs.close(5)
        assert [job.closed for job in shop.made] == [1]

    asyncio.run(go())


def test_a_runner_whose_jobs_cannot_be_does_not_start() -> None:
    shop = Workshop()
    runner = Runner([], MemorySink(), CollectorOptions(), jobs=shop.plans(Config(name="x", is_wrong=True)))
    with pytest.raises(JobSetError, match="x cannot be"):
        runner.start()
    assert not runner.is_running
    runner.stop()
