"""What sampling hidden states costs the scheduler's thread, at the settings that the probe comes with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.probe.states.test_reduction import seen
from tests.sglang_cpu.install import Rig

from specscope_probe.states.options import StateOptions

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

CYCLE_US, SHARE = 15_000, 0.002
UNSAMPLED_US = 30.0
LAUNCH_US = 3.0
"""Host time of a call on a GPU beyond that of the same call on a few numbers on the CPU."""
CLOCK_US = 0.065
"""Of one reading of the clock on a usual machine: on a slower or busier one all takes longer."""


@pytest.mark.benchmark
def test_host_time_of_sampled_cycles(installed_rig: Rig, probe_site: Path) -> None:
    found = seen(installed_rig, probe_site, "../../benchmarks/states_cost_driver.py")
    story, narrow, usual = found["story"], found["narrow"], min(CLOCK_US / found["clock"], 1.0)
    every = StateOptions().verify_every
    unsampled = narrow["unsampled"] * usual
    bookkeeping = (narrow["sampled"] - narrow["unsampled"] - narrow["reduction"]) * usual
    launching = narrow["reduction"] * usual + narrow["launches"] * LAUNCH_US
    finishing = narrow["finishing"] * usual
    average = unsampled + (bookkeeping + launching) / every
    print(  # noqa: T201
        f"\nunsampled {unsampled:.1f} µs; every {every}. cycle: bookkeeping {bookkeeping:.0f} µs, launching "
        f"{launching:.0f} µs ({narrow['launches']} calls), the thread beside {finishing:.0f} µs; "
        f"{average:.1f} µs per cycle = {100 * average / CYCLE_US:.2f} %. The reduction itself, "
        f"[48, 3 × 7168] on this CPU: {story['reduction'] / 1000:.1f} ms. "
        f"One reading of the clock: {1000 * found['clock']:.0f} ns"
    )
    assert unsampled < UNSAMPLED_US
    assert average < SHARE * CYCLE_US
    assert story["metered_share"] > 0.95, "what the budget judges must be all of it"
