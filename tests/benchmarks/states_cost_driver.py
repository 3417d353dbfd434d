"""Run by `test_probe_states.py` with the rig's Python: what sampling hidden states costs the host.

The same cycles of a stand-in engine in turn: without a probe, with one that samples no cycle, and with one
that samples every cycle, on the story's shape and on rows so narrow that of each call only its launch is
left: what a device does later, a CPU does at once. Prints microseconds as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from prometheus_client import CollectorRegistry
from tests.probe.standin import Batch, ForwardMode, Request, Runner, Scheduler, Worker, engine
from torch.utils._python_dispatch import TorchDispatchMode

from specscope_probe.options import Options
from specscope_probe.probe import Probe

REQUESTS, D, SLOTS = 8, 6, 3
ROWS = REQUESTS * D
STORY, NARROW = 7168, 8
WARM_UP, ROUNDS, BLOCK = 40, 150, 100
NEVER = "1000000"


class StateRunner(Runner):
    """A target that has computed its states already."""

    def __init__(self, hidden_size: int, device: str) -> None:
        super().__init__(lambda name: None, device)
        generator = torch.Generator().manual_seed(1)
        states = torch.randn(ROWS, SLOTS * hidden_size, generator=generator).bfloat16().to(device)
        self.output = SimpleNamespace(logits_output=SimpleNamespace(hidden_states=states))
        self.model_config = SimpleNamespace(hidden_size=hidden_size)
        self.model = SimpleNamespace(model=SimpleNamespace(layers_to_capture=[2, 4, 6], layers=[None] * 8))

    def forward(self, forward_batch: Any, skip: bool = False) -> Any:
        """Hand them out."""
        return self.output


class StateWorker(Worker):
    """EAGLEWorkerV2 in outline; every cycle is the same."""

    spec_info = SimpleNamespace(draft_token_num=D)

    def place(self, device: str) -> None:
        """Make the tensors that a batch holds."""
        self.ids = (torch.arange(ROWS) % 29).to(device)
        self.positions = (100 + torch.arange(ROWS)).to(device)
        self.lengths = (1 + torch.arange(REQUESTS) % D).to(torch.int32).to(device)

    def verify(self, batch: Batch, grammar_barrier: Any = None) -> Any:
        """Verify."""
        given = {"input_ids": self.ids, "positions": self.positions, "spec_info": self.spec_info}
        self.target_worker.model_runner.forward(
            forward_batch=SimpleNamespace(forward_mode=ForwardMode.TARGET_VERIFY, **given)
        )
        return SimpleNamespace(accept_lens=self.lengths)


class Resolved:
    """SchedulerBatchResultProcessor of 0.5.23 in outline: what was accepted is known on the host by then."""

    __slots__ = ()

    def _resolve_spec_v2_tokens(self, result: Any, batch: Batch) -> list[int]:
        result.num_correct_drafts_per_req_cpu = [length % D for length in range(REQUESTS)]
        return [7]


class Carried:
    """One engine, and how long its cycles took."""

    def __init__(self, hidden_size: int, verify_every: str | None, device: str = "cpu") -> None:
        self.scheduler: Scheduler = engine()
        self.scheduler.batch_result_processor = type("Resolved", (Resolved,), {"__slots__": ()})()
        self.scheduler.tp_worker.model_runner = StateRunner(hidden_size, device)
        worker = self.scheduler.draft_worker
        self.scheduler.draft_worker = StateWorker(
            worker.spend, worker.target_worker, worker.draft_worker,
            speculative_num_steps=D - 1, speculative_num_draft_tokens=D,
        )  # fmt: skip
        self.scheduler.draft_worker.place(device)
        self.probe: Any = None
        self.reduction_us: list[float] = []
        self.took_us: list[float] = []
        self.finishing_us: list[float] = []
        if verify_every is not None:
            os.environ["SPECSCOPE_PROBE_STATES_VERIFY_EVERY"] = verify_every
            options = Options(stop_file=Path("none"), budget=1.0)
            self.probe = Probe(self.scheduler, options, CollectorRegistry())
            self.probe.attach()

    def run(self, batch: Batch) -> None:
        """Run one cycle, and let the thread beside finish, outside of what is timed."""
        self.reduction_us.append(0.0)
        began = time.perf_counter_ns()
        self.scheduler.run(batch)
        self.took_us.append((time.perf_counter_ns() - began) / 1000)
        if self.reducer is not None:
            self._let_it_finish()

    def _let_it_finish(self) -> None:
        """Hand on the last sample, as the next cycle does, and wait until the thread has dealt with it."""
        self._time_finishing()
        samples = self.probe.states.counts.samples["verify"]
        self.probe.states._listener._pipeline.poll(time.perf_counter_ns())
        deadline = time.monotonic() + 20
        while len(self.finishing_us) < samples:
            assert time.monotonic() < deadline
            time.sleep(0.0002)

    def _time_finishing(self) -> None:
        """Note from the first sample on how long the thread beside computes."""
        finisher = self.probe.states._finisher
        if vars(finisher).get("take") is not None:
            return
        take = finisher.take

        def timed(entry: Any) -> None:
            began = time.thread_time_ns()
            take(entry)
            self.finishing_us.append((time.thread_time_ns() - began) / 1000)

        finisher.take = timed

    def block(self, batch: Batch) -> float:
        """Return the time of a cycle among many, in µs."""
        began = time.perf_counter_ns()
        for _ in range(BLOCK):
            self.scheduler.run(batch)
        return (time.perf_counter_ns() - began) / BLOCK / 1000

    @property
    def reducer(self) -> Any:
        """What reduces on the device; None before the first sample."""
        if self.probe is None or self.probe.states._listener._pipeline is None:
            return None
        return self.probe.states._listener._pipeline.reducer

    def time_reduction(self) -> None:
        """Note from now on what is spent in calls that a device does later."""
        reducer = self.reducer

        def timed(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                began = time.perf_counter_ns()
                result = call(*args, **kwargs)
                self.reduction_us[-1] += (time.perf_counter_ns() - began) / 1000
                return result

            return run

        for name in ("begin", "add", "finish"):
            setattr(reducer, name, timed(getattr(reducer, name)))


class Counting(TorchDispatchMode):
    """Counts the calls that a device would be given: all but views."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aliases = [each.alias_info for each in func._schema.returns]
        self.count += not any(alias is not None and not alias.is_write for alias in aliases)
        return func(*args, **(kwargs or {}))


def costs(hidden_size: int, batch: Batch) -> dict[str, float]:
    """Return medians in µs of the kinds of cycles, measured in turn, and the calls of a sampled one."""
    off, idle, busy = (Carried(hidden_size, every) for every in (None, NEVER, "1"))
    kinds = (off, idle, busy)
    for _ in range(WARM_UP):
        for kind in kinds:
            kind.run(batch)
    before, busy.took_us = busy.probe.meter.ns, []
    rounds = []
    for _ in range(ROUNDS):
        rounds.append((off.block(batch), idle.block(batch)))
        busy.run(batch)
    without, unsampled = (min(column) for column in zip(*rounds, strict=True))
    sampled = usual(busy.took_us)
    metered_us = (busy.probe.meter.ns - before) / 1000
    seen_us = sum(busy.took_us) - ROUNDS * without
    busy.time_reduction()
    for _ in range(ROUNDS):
        busy.run(batch)
    reduction = usual(busy.reduction_us[-ROUNDS:])
    with Counting() as counting:
        busy.run(batch)
    assert busy.probe.states.part.is_on
    assert busy.probe.states.counts.samples["verify"] >= 2 * ROUNDS
    return {
        "unsampled": unsampled - without,
        "sampled": sampled - without,
        "reduction": reduction,
        "finishing": usual(busy.finishing_us[ROUNDS:]),
        "metered_share": metered_us / seen_us,
        "launches": counting.count,
    }


def usual(took_us: list[float]) -> float:
    """Return a time without those in which the thread had to wait for a processor."""
    return statistics.quantiles(took_us, n=10)[0]


def clock_reading() -> float:
    """Return microseconds of one reading of the clock, by which machines are compared."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        for _ in range(100):
            time.perf_counter_ns()
        found.append((time.perf_counter_ns() - began) / 100_000)
    return usual(found)


def main() -> None:
    """Measure both widths."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPECSCOPE_SPOOL"] = folder
        os.environ["SPECSCOPE_PROBE_STATES_FIRST_WINDOW_SECONDS"] = "3600"
        token_ids = Path(folder, "token_ids.json")
        token_ids.write_text(json.dumps(list(range(64))))
        os.environ["SPECSCOPE_PROBE_TOKEN_IDS"] = str(token_ids)
        batch = Batch([Request(str(index)) for index in range(REQUESTS)])
        found: dict[str, Any] = {"story": costs(STORY, batch), "narrow": costs(NARROW, batch)}
        found["clock"] = clock_reading()
    sys.stdout.write("SEEN " + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
