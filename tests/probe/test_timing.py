"""Cycle timing over a stand-in engine whose every step takes a known time, on both clocks."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.probe.standin import ForwardMode
from tests.probe.timing_rig import HOST_NS, Rig

import specscope_probe
from specscope_probe.buckets import BATCH_BUCKETS
from specscope_probe.budget import Budget
from specscope_probe.clocks import CudaClock, device_clock
from specscope_probe.parts import Part, State
from specscope_probe.tallies import MAX_SHAPES, WARM_UP_CYCLES, Shape
from specscope_probe.timing import MAX_PENDING, Cycle, CycleTimer
from specscope_probe.wrapping import Meter, Seam, wrap


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    """An engine with a device."""
    return Rig(monkeypatch)


def test_both_clocks_see_the_phases(rig: Rig) -> None:
    rig.run(WARM_UP_CYCLES + 10)
    rig.finish()
    rig.run(1)
    host, device = rig.sums("speculative", "host"), rig.sums("speculative", "device")
    assert host["cycles"] == 11
    assert device["cycles"] == 10
    took = {"draft": 100, "verify_prepare": 20, "verify": 500, "sampling": 30, "draft_extend": 80, "other": 7}
    for name, ns in took.items():
        assert host[name] == pytest.approx(11 * ns * 1e-9)
        assert device[name] == pytest.approx(10 * ns * 1e-6)
    assert host["all"] == pytest.approx(11 * 737e-9)
    assert rig.part.refused == 0


def test_the_device_is_never_waited_for(rig: Rig) -> None:
    """`FakeEvent.elapsed_time` fails on an unfinished event, as CUDA does."""
    rig.run(20)
    assert not any(shape.clock == "device" for shape in rig.timer.tally.sums)
    rig.finish()
    rig.run(1)
    assert rig.sums("speculative", "device")["cycles"] == 20 - WARM_UP_CYCLES
    assert rig.part.is_on


def test_the_gap_is_measured_only_when_the_engine_went_straight_on(rig: Rig) -> None:
    rig.run(5)
    rig.scheduler.last_batch = None  # the scheduler idled
    rig.now += 10**9
    rig.run(5)
    rig.finish()
    rig.run(1)
    host, device = rig.sums("gap", "host"), rig.sums("gap", "device")
    assert host["cycles"] + WARM_UP_CYCLES == 4 + 4 + 1
    assert host["gap"] == pytest.approx(host["cycles"] * 40e-9)
    assert device["gap"] == pytest.approx(device["cycles"] * 40e-6)


def test_first_cycles_of_a_shape_stay_out_of_its_times(rig: Rig) -> None:
    rig.run(1)
    rig.now += 3 * 10**9  # compilation between two marks would look like this
    rig.run(4)
    sums = rig.timer.tally.sums[Shape("speculative", "all", "all", "host")]
    assert (sums.warm_up_cycles, sums.cycles) == (WARM_UP_CYCLES, 3)
    assert sums.warm_up_seconds == pytest.approx(WARM_UP_CYCLES * 737e-9)


def test_prefill_is_a_kind_of_its_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOST_NS, "prefill_draft_extend", 60)
    rig.run(WARM_UP_CYCLES + 2, mode=ForwardMode.EXTEND)
    sums = rig.sums("prefill", "host", "all")
    assert sums["prefill"] == pytest.approx(2 * 500e-9)
    assert sums["prefill_draft_extend"] == pytest.approx(2 * 60e-9)


def test_an_idle_rank_counts_no_cycle(rig: Rig) -> None:
    rig.run(3, requests=0)
    assert rig.timer.tally.sums == {}
    assert len(rig.device.out) == 0


def test_events_come_back_to_the_pool(rig: Rig) -> None:
    for _ in range(200):
        rig.run(3)
        rig.finish()
    assert rig.device.made < 60
    assert len(rig.device.out) < 60


def test_a_device_that_never_answers_costs_bounded_memory(rig: Rig) -> None:
    rig.run(MAX_PENDING + 500)
    assert rig.timer.dropped == 500
    assert rig.device.made <= (MAX_PENDING + 3) * 10


def test_cuda_events_are_pooled_and_only_recorded() -> None:
    """Whatever else of ``torch.cuda`` is touched (a synchronisation above all) is an AttributeError."""
    made: list[Any] = []

    def event(*, enable_timing: bool) -> Any:
        assert enable_timing
        made.append(SimpleNamespace(record=lambda: None))
        return made[-1]

    clock = CudaClock(SimpleNamespace(cuda=SimpleNamespace(Event=event)))
    first = clock.mark()
    clock.give_back(first)
    assert clock.mark() is first
    assert clock.mark() is not first
    assert len(made) == 2
    assert device_clock("cpu") is device_clock("xpu:0") is None


def test_nothing_is_recorded_while_a_graph_is_captured(rig: Rig) -> None:
    rig.device.capturing = True
    rig.run(3)
    assert rig.device.made == 0
    assert rig.timer.cycles == 3
    assert rig.timer.tally.sums == {}


def test_an_exception_of_the_engine_ends_its_cycle(rig: Rig) -> None:
    rig.run(3)

    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("out of memory")

    rig.scheduler.draft_worker.draft_worker._draft_extend_for_decode = fail
    with pytest.raises(ValueError, match="out of memory"):
        rig.run(1)
    del rig.scheduler.draft_worker.draft_worker._draft_extend_for_decode
    rig.finish()
    rig.run(4)
    assert rig.part.is_on
    assert rig.sums("speculative", "host")["cycles"] == 3 + 4 - WARM_UP_CYCLES


def test_only_every_kth_cycle_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(monkeypatch, every=4)
    rig.run(40)
    assert rig.timer.cycles == 40
    assert rig.sums("speculative", "host")["cycles"] == 10 - WARM_UP_CYCLES


def test_every_batch_size_of_one_depth_has_a_label_set(rig: Rig) -> None:
    for requests in range(1, 400):
        rig.run(1, requests=requests)
        rig.finish()
    found = {shape.batch for shape in rig.timer.tally.sums if shape.clock == "device"}
    assert found == set(BATCH_BUCKETS)


def test_label_sets_are_bounded(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    for requests in range(1, 400):
        rig.scheduler.draft_worker.speculative_num_draft_tokens = 2 + requests % 7
        rig.run(1, requests=requests)
        rig.finish()
    rig.run(1)
    sums = {shape: sums for shape, sums in rig.timer.tally.sums.items() if shape.kind == "speculative"}
    labels = {(shape.batch, shape.num_draft_tokens) for shape in sums if shape.clock == "device"}
    assert len(labels) == MAX_SHAPES + 1
    assert ("more", "more") in labels
    counted = {
        clock: sum(s.cycles + s.warm_up_cycles for k, s in sums.items() if k.clock == clock)
        for clock in ("host", "device")
    }
    assert counted == {"host": 400, "device": 399}, "the device is behind by one"
    assert caplog.text.count("over 12 combinations of batch size and D") == 1


def kept_bytes() -> int:
    """Return what the probe's own lines have allocated and still hold: other threads allocate meanwhile."""
    gc.collect()
    ours = tracemalloc.Filter(True, f"{Path(specscope_probe.__file__).parent}/*")
    found = tracemalloc.take_snapshot().filter_traces([ours])
    return sum(each.size for each in found.statistics("filename"))


def growth_over_cycles(rig: Rig, chunks: int) -> int:
    """Return by how many bytes so many times 200 cycles of several shapes grow what the probe holds."""

    def run() -> None:
        for _ in range(chunks):
            for requests in (1, 2, 5, 17, 64):
                rig.run(40, requests=requests)
                rig.finish()

    run()  # what is made once is made now
    tracemalloc.start()
    try:
        run()
        before = kept_bytes()
        run()
        return kept_bytes() - before
    finally:
        tracemalloc.stop()


def test_a_day_of_cycles_does_not_grow(rig: Rig) -> None:
    """24 h at 15 ms are 5.8 million cycles; what one keeps would show long before."""
    assert growth_over_cycles(rig, 15) < 3_000, "3,000 cycles must not keep one byte each"


def test_a_probe_that_kept_its_cycles_would_be_noticed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Cycle] = []
    close = CycleTimer._close

    def keep(timer: CycleTimer, cycle: Cycle, *more: Any) -> None:
        kept.append(cycle)
        close(timer, cycle, *more)

    monkeypatch.setattr(CycleTimer, "_close", keep)
    assert growth_over_cycles(rig, 2) > 3_000


def spend_more(meter: Meter, share: float, *, is_computing: bool = True) -> Callable[[Rig, int], None]:
    """Return a function that runs cycles while the probe costs ``share`` of their wall time."""

    def run(rig: Rig, cycles: int) -> None:
        before = rig.timer.wall_ns
        rig.run(cycles)
        spent = int(share * (rig.timer.wall_ns - before))
        meter.ns += spent
        meter.cpu_ns += spent if meter.is_checking and is_computing else 0

    return run


def test_above_its_budget_the_probe_times_less_and_then_stops(rig: Rig) -> None:
    meter, accepts = Meter(), Part("accepts")
    budget = Budget(0.005, meter, rig.timer, [rig.part, accepts])
    run = spend_more(meter, 0.02)
    seen: list[int] = []
    for _ in range(8):
        run(rig, 256)
        budget.check()
        assert rig.timer.every == [1, *seen][-1], "one window is a suspicion only"
        run(rig, 256)
        budget.check()
        seen.append(rig.timer.every)
    assert seen == [2, 4, 8, 16, 32, 64, 64, 64]
    assert rig.part.state is accepts.state is State.OVER_BUDGET
    assert "2.00 %" in accepts.reason
    assert not accepts.is_on


@pytest.mark.parametrize(("share", "every"), [(0.02, 1), (0.2, 4)])
def test_waiting_for_a_processor_is_none_of_its_cost(rig: Rig, share: float, every: int) -> None:
    """Unless it is far too much, for then something else is wrong."""
    meter = Meter()
    budget = Budget(0.005, meter, rig.timer, [rig.part])
    run = spend_more(meter, share, is_computing=False)
    for _ in range(5):
        run(rig, 256)
        budget.check()
    assert rig.timer.every == every
    assert rig.part.is_on


def test_within_its_budget_nothing_changes(rig: Rig) -> None:
    meter = Meter()
    budget = Budget(0.005, meter, rig.timer, [rig.part])
    run = spend_more(meter, 0.004)
    for _ in range(4):
        run(rig, 300)
        budget.check()
    assert rig.timer.every == 1
    assert rig.part.is_on
    assert budget.spent == pytest.approx(0.004, rel=0.01)


def test_timing_comes_back_step_by_step_when_it_is_cheap_again(rig: Rig) -> None:
    meter = Meter()
    rig.timer.every = 2
    budget = Budget(0.005, meter, rig.timer, [rig.part])
    rig.timer.every = 8
    seen = []
    for share in (0.001, 0.001, 0.001, 0.004, *[0.001] * 12):
        spend_more(meter, share)(rig, 256)
        budget.check()
        seen.append(rig.timer.every)
    assert seen == [8] * 7 + [4] * 4 + [2] * 5, "a dearer window begins the row anew; what was set is the end"


def test_the_budget_is_watched_when_the_timing_has_failed() -> None:
    meter, timing, accepts = Meter(), Part("timing"), Part("accepts")
    timer = CycleTimer(timing, None, None, None)
    budget = Budget(0.005, meter, timer, [timing, accepts])
    seam = Seam("cycle", Meter())
    budget.listen({"cycle": seam})
    cycle = wrap(lambda: None, seam)
    timing.fail(ValueError("broken"))
    for _ in range(2):
        for _ in range(256):
            cycle()
        meter.ns += 10**9
        meter.cpu_ns += 10**9
        budget.check()
    assert accepts.state is State.OVER_BUDGET
    assert timing.state is State.FAILED


class Reducing:
    """What computes on the device, at a share of the cycles' time that can be set."""

    def __init__(self, least: int) -> None:
        self.part = Part("states")
        self.seconds: float | None = None
        self.every, self.least = 1, least

    def device_seconds(self) -> float | None:
        """Return what it took."""
        return self.seconds

    def thin(self) -> bool:
        """Do half as much."""
        if self.every >= self.least:
            return False
        self.every *= 2
        return True


def run_reducing(rig: Rig, budget: Budget, work: Reducing, shares: list[float]) -> list[int]:
    """Return how sparsely it works after each window in which the device was busy for such a share."""
    seen = []
    for share in shares:
        before = rig.timer.wall_ns
        rig.run(256)
        work.seconds = (work.seconds or 0.0) + share * (rig.timer.wall_ns - before) / 1e9
        budget.check()
        seen.append(work.every)
    return seen


def test_states_that_keep_the_device_busy_are_thinned_and_then_stop_alone(rig: Rig) -> None:
    work = Reducing(least=4)
    budget = Budget(0.005, Meter(), rig.timer, [rig.part, work.part], work)
    assert run_reducing(rig, budget, work, [0.02, 0.001, 0.02, 0.0]) == [1] * 4, "one window is a suspicion"
    assert run_reducing(rig, budget, work, [0.02] * 4) == [1, 2, 2, 4]
    assert work.part.is_on
    run_reducing(rig, budget, work, [0.02] * 2)
    assert work.part.state is State.OVER_BUDGET
    assert "2.00 % of the cycles' time on the device" in work.part.reason
    assert rig.part.is_on
    assert rig.timer.every == 1


def test_device_time_that_nobody_knows_is_not_judged(rig: Rig) -> None:
    work = Reducing(least=1)
    budget = Budget(0.005, Meter(), rig.timer, [rig.part, work.part], work)
    for _ in range(3):
        rig.run(256)
        budget.check()
    assert run_reducing(rig, budget, work, [0.004] * 4) == [1] * 4
    assert work.part.is_on
