"""The runner: a thread of its own, a steady cadence, a clean stop; no target waits for another."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import pytest
import structlog
from tests.collectors.fetch.servers import drip, flood, hang, serving
from tests.collectors.runner.engine import PATIENT_SECONDS, Engine, MemorySink

from specscope_collectors.config import CollectorOptions, parse_target
from specscope_collectors.observations import Batch, HealthState, SourceHealth
from specscope_collectors.plan import Watching
from specscope_collectors.runner import Runner
from specscope_collectors.target import TargetCollector

DEADLINE_SECONDS = 60.0
FAST = CollectorOptions(scrape_interval_seconds=0.1, scrape_timeout_seconds=PATIENT_SECONDS)


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until true; fail at the deadline."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < end, "the deadline passed"
        threading.Event().wait(0.01)


def health_of(batches: list[Batch], name: str) -> list[SourceHealth]:
    return [
        each
        for batch in batches
        if batch.target.name == name
        for each in batch.observations
        if isinstance(each, SourceHealth) and each.source == "sglang_metrics"
    ]


@pytest.mark.parametrize("bad", [hang, drip, flood(10**9)], ids=["hangs", "drips", "floods"])
def test_a_bad_target_does_not_delay_a_good_one(bad: Callable[..., object]) -> None:
    sink = MemorySink()
    with serving(Engine()) as good, serving(bad) as worse:  # type: ignore[arg-type]
        bad_ones = (parse_target(f"bad{n}={worse.url}") for n in range(4))
        targets = [Watching(target=parse_target(f"good={good.url}"), options=FAST), *bad_ones]
        # fewer places than bad targets: they must not occupy all of them
        options = CollectorOptions(
            scrape_interval_seconds=0.1, scrape_timeout_seconds=3, concurrency=2, max_body_bytes=2**20
        )
        runner = Runner(targets, sink, options)
        runner.start()
        try:
            wait_until(lambda: len(health_of(sink.batches, "good")) >= 20)
        finally:
            runner.stop()
    times = [health.time_ms for health in health_of(sink.batches, "good")]
    assert {health.state for health in health_of(sink.batches, "good")} == {HealthState.OK}
    gaps = sorted(after - before for before, after in itertools.pairwise(times))
    assert gaps[len(gaps) // 2] < 1_500  # the cadence is 100 ms, the deadline of the bad ones 3 s
    bad_states = {health.state for n in range(4) for health in health_of(sink.batches, f"bad{n}")}
    assert bad_states <= {HealthState.TIMEOUT, HealthState.TOO_LARGE}


def test_it_stops_quickly_with_requests_in_flight_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with serving(hang) as server:
        runner = Runner([parse_target(server.url)], MemorySink(), CollectorOptions(scrape_timeout_seconds=60))
        runner.start()
        wait_until(lambda: bool(server.requests))
        assert runner.is_running
        started = time.monotonic()
        runner.stop()
        assert time.monotonic() - started < 30  # the request may take 60 s
        assert not runner.is_running
        runner.stop()
    wait_until(lambda: threading.active_count() <= before)


def test_it_cannot_be_started_twice_and_can_be_started_again() -> None:
    sink = MemorySink()
    with serving(Engine()) as server:
        runner = Runner([parse_target(server.url)], sink, FAST)
        runner.start()
        with pytest.raises(RuntimeError, match="already started"):
            runner.start()
        wait_until(lambda: len(sink.batches) >= 2)
        runner.stop()
        seen = len(sink.batches)
        runner.start()
        wait_until(lambda: len(sink.batches) > seen)
        runner.stop()
    assert [batch.sequence for batch in sink.batches] == list(range(1, len(sink.batches) + 1))
    assert len(sink.launches()) == 1


def test_growth_is_exact_over_many_scrapes_while_requests_run() -> None:
    engine, sink = Engine(), MemorySink()
    with serving(engine) as server:
        runner = Runner([parse_target(server.url)], sink, FAST)
        runner.start()
        wait_until(lambda: len(sink.batches) >= 1)
        for _ in range(50):
            engine.serve(tokens=7, verify_calls=3)
        seen = len(sink.batches)
        wait_until(lambda: len(sink.batches) >= seen + 2)
        runner.stop()
    assert sink.total("tokens.generated") == 350
    assert sink.total("spec.verify_calls") == 150


def test_a_store_that_raises_does_not_end_the_runner() -> None:
    sink = MemorySink(is_down=True)
    with serving(Engine()) as server:
        runner = Runner([parse_target(server.url)], sink, FAST)
        runner.start()
        wait_until(lambda: sink.turned_away >= 3)
        assert runner.is_running
        sink.is_down = False
        wait_until(lambda: bool(sink.batches))
        runner.stop()
    assert sink.launches()


def test_scrape_once_returns_when_everything_is_stored() -> None:
    sink = MemorySink()
    with serving(Engine()) as one, serving(Engine()) as two:
        Runner([parse_target(one.url), parse_target(two.url)], sink, FAST).scrape_once()
    assert {batch.target.base_url for batch in sink.batches} == {one.url, two.url}


def test_without_targets_it_starts_and_stops() -> None:
    runner = Runner([], MemorySink(), FAST)
    runner.start()
    runner.stop()
    assert not runner.is_running


def test_a_bug_in_a_collector_is_logged_once_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[str] = []

    async def scrape(collector: TargetCollector) -> None:
        attempts.append(collector.target.name)
        raise RuntimeError("a bug")

    monkeypatch.setattr(TargetCollector, "scrape", scrape)
    runner = Runner([parse_target("a=gpu1:1")], MemorySink(), CollectorOptions(scrape_interval_seconds=0.01))
    with structlog.testing.capture_logs() as logs:
        runner.start()
        try:
            wait_until(lambda: len(attempts) >= 5)
            assert runner.is_running
        finally:
            runner.stop()
    assert [entry["error"] for entry in logs if entry["event"] == "scrape failed"] == [
        "RuntimeError('a bug')"
    ]
