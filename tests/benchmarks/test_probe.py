"""What the probe costs the scheduler's thread per cycle: the same engine with and without it, in turn."""

from __future__ import annotations

import time

import pytest
from tests.probe.standin import Batch, Request, Scheduler, engine

from specscope_probe.options import Options
from specscope_probe.probe import Probe

CYCLES = 100
ROUNDS = 150
CLOCK_READINGS, CLOCK_READINGS_PER_REQUEST = 400, 4
"""What a cycle may cost, in readings of the clock (60–70 ns each on a usual machine: below 30 µs)."""


def microseconds(scheduler: Scheduler, batch: Batch) -> float:
    """Return the time of one cycle."""
    began = time.perf_counter_ns()
    for _ in range(CYCLES):
        scheduler.run(batch)
    return (time.perf_counter_ns() - began) / CYCLES / 1000


def clock_reading() -> float:
    """Return microseconds of one reading of the clock."""
    began = time.perf_counter_ns()
    for _ in range(CYCLES):
        time.perf_counter_ns()
    return (time.perf_counter_ns() - began) / CYCLES / 1000


@pytest.mark.benchmark
@pytest.mark.parametrize("requests", [1, 8, 64])
def test_host_time_per_cycle(requests: int) -> None:
    batch = Batch([Request(str(index)) for index in range(requests)])
    without, carrying = engine(), engine()
    probe = Probe(carrying, Options(budget=1.0))
    probe.attach()
    rounds = [
        (microseconds(without, batch), microseconds(carrying, batch), clock_reading()) for _ in range(ROUNDS)
    ]
    off, on, clock = (min(column) for column in zip(*rounds, strict=True))
    print(f"\n{requests} requests: {on - off:.1f} µs per cycle = {(on - off) / clock:.0f} clock readings")  # noqa: T201
    assert on - off < (CLOCK_READINGS + CLOCK_READINGS_PER_REQUEST * requests) * clock
