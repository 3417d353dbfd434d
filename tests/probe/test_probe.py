"""The probe as a whole over a stand-in engine: output, missing seams, faults, removal, forks, size."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.probe.standin import Batch, Drafter, ForwardMode, Request, Scheduler, engine

from specscope_probe.accepts import why_uncounted
from specscope_probe.options import DEFAULT_BUDGET, Options, read_options
from specscope_probe.parts import State
from specscope_probe.phases import GAP, PHASES, PREFILL, SPECULATIVE
from specscope_probe.probe import Probe
from specscope_probe.seams import PLACES, find
from specscope_probe.tallies import TimeTally

MAX_BYTES_SPEAKER = 42_000
MAX_BYTES_OTHER = 2_400
"""Together less than 60 kB for one speaker and seven others, however long they run."""


def start(scheduler: Scheduler, **options: Any) -> tuple[Probe, CollectorRegistry]:
    """Attach a probe that exports into a registry of the test's own when told to."""
    registry = CollectorRegistry()
    probe = Probe(
        scheduler, Options(**{"stop_file": Path("does-not-exist"), "budget": 1.0, **options}), registry
    )
    probe.attach()
    return probe, registry


def part_state(registry: CollectorRegistry, part: str, **ranks: str) -> list[str]:
    """Return the states of a part that are 1."""
    return [
        state
        for state in State
        if registry.get_sample_value("specscope_probe_part", {"part": part, "state": state, **ranks}) == 1
    ]


RANKS = {"tp_rank": "0", "pp_rank": "0"}


def test_what_is_counted_comes_out() -> None:
    scheduler = engine(accepts=lambda batch: [0, 2])
    probe, registry = start(scheduler)
    for _ in range(5):
        scheduler.run(Batch([Request(), Request()]))
    probe.export()
    probe.export()

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, RANKS | labels)

    assert value("specscope_cycles_total", view="requests") == 10
    accepted = [value("specscope_drafts_accepted_total", position=k, view="requests") for k in "123"]
    proposed = [value("specscope_drafts_proposed_total", position=k, view="requests") for k in "123"]
    assert accepted == [5, 5, 0], "a position at which nothing was accepted is 0, not missing"
    assert proposed == [10, 10, 10]
    assert value("specscope_cycles_by_accepted_total", accepted="2", view="worker") == 5
    assert value("specscope_cycles_seen_total") == 5
    shape = {"batch": "2", "num_draft_tokens": "4", "overlap": "off", "clock": "host"}
    assert value("specscope_cycles_timed_total", kind="speculative", **shape) == 3
    assert value("specscope_warm_up_cycles_total", kind="speculative", clock="host") == 2
    assert (value("specscope_phase_seconds_total", phase="draft", **shape) or 0) > 0
    assert (value("specscope_probe_host_seconds_total", where="cycle") or 0) > 0
    assert part_state(registry, "timing", **RANKS) == ["on"]


def test_labels_of_the_engines_own_metrics_are_taken() -> None:
    scheduler = engine()
    collector = type(
        "Collector", (), {"labels": {"tp_rank": 0, "moe_ep_rank": 2, "model_name": "a/very/long"}}
    )
    scheduler.metrics_collector = collector  # type: ignore[attr-defined]
    probe, registry = start(scheduler)
    probe.export()
    ranks = {"tp_rank": "0", "moe_ep_rank": "2"}
    assert registry.get_sample_value("specscope_cycles_seen_total", ranks) == 0


@pytest.mark.parametrize(
    ("owner", "method", "seam"),
    [
        ("drafter", "draft", "draft"),
        ("worker", "verify", "verify"),
        ("drafter", "_draft_extend_for_decode", "draft_extend"),
        ("drafter", "_draft_extend_for_prefill", "prefill_draft_extend"),
    ],
)
def test_a_missing_seam_costs_its_part_only(owner: str, method: str, seam: str) -> None:
    scheduler = engine()
    if owner == "worker":
        scheduler.draft_worker = Renamed(scheduler.draft_worker, method)
    else:
        scheduler.draft_worker.draft_worker = Renamed(scheduler.draft_worker.draft_worker, method)
    found, missing = find(scheduler)
    assert set(found) == {place.name for place in PLACES} - {seam}
    assert method in missing[seam]
    probe, _ = start(scheduler)
    assert probe.timing.is_on


class Renamed:
    """A worker one of whose methods has another name."""

    def __init__(self, inner: Any, gone: str) -> None:
        self._inner, self._gone = inner, gone

    def __getattr__(self, name: str) -> Any:
        if name == self._gone:
            raise AttributeError(name)
        return getattr(self._inner, name)


class Closed(Drafter):
    """A worker that takes no wrapper."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "draft":
            raise AttributeError(name)
        super().__setattr__(name, value)


def test_an_object_that_takes_no_wrapper_costs_its_seam_only() -> None:
    scheduler = engine()
    scheduler.draft_worker.draft_worker = Closed(lambda name: None)
    probe, _ = start(scheduler)
    scheduler.run(Batch([Request()]))
    assert "cannot be wrapped" in probe.missing["draft"]
    assert (probe.timing.is_on, probe.timer.cycles, sum(probe.counter.worker_view.by_accepted)) == (
        True,
        1,
        1,
    )


def test_results_that_cannot_be_found_are_missing_and_not_zero() -> None:
    scheduler = engine()
    scheduler.batch_result_processor = object()
    probe, registry = start(scheduler)
    scheduler.draft_worker.forward_batch_generation(Batch([Request()]))
    probe.export()
    assert part_state(registry, "accepts", **RANKS) == ["missing"]
    assert registry.get_sample_value("specscope_cycles_total", RANKS | {"view": "requests"}) is None


def test_an_engine_without_speculation_is_timed_and_accepts_nothing() -> None:
    scheduler = engine()
    scheduler.draft_worker = None
    runner = scheduler.tp_worker.model_runner
    scheduler.tp_worker.forward_batch_generation = lambda batch: runner.forward(batch)
    probe, registry = start(scheduler)
    for _ in range(4):
        scheduler.tp_worker.forward_batch_generation(Batch([Request()]))
    probe.export()
    assert part_state(registry, "accepts", **RANKS) == ["missing"]
    shape = {"batch": "1", "num_draft_tokens": "0", "overlap": "off", "clock": "host"}
    assert registry.get_sample_value("specscope_cycles_timed_total", RANKS | shape | {"kind": "plain"}) == 2


def test_lookups_of_old_versions_have_their_counts_on_the_device() -> None:
    worker = engine().draft_worker
    worker.ngram_cache = object()
    assert why_uncounted(worker, "_resolve_spec_v2_tokens") is None
    assert "on the device" in (why_uncounted(worker, "_resolve_spec_overlap_token_ids") or "")
    del worker.ngram_cache
    assert why_uncounted(worker, "_resolve_spec_overlap_token_ids") is None


def test_a_bug_in_counting_leaves_timing_and_engine_alone(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = engine(accepts=lambda batch: [1])
    probe, registry = start(scheduler)
    batch = Batch([Request(rid=None)])  # type: ignore[arg-type]
    for _ in range(4):
        assert scheduler.run(batch).accept_lens == [2]
    probe.export()
    assert part_state(registry, "accepts", **RANKS) == ["failed"]
    assert registry.get_sample_value("specscope_probe_errors_total", RANKS | {"part": "accepts"}) == 1
    assert part_state(registry, "timing", **RANKS) == ["on"]
    assert caplog.text.count("accepts is switched off") == 1


def test_an_exporter_that_raises_ends_the_output_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = engine()
    registry = CollectorRegistry()
    options = Options(stop_file=tmp_path / "stop", export_seconds=0.05)
    Probe(scheduler, options, registry).export()  # its names are in the registry: the next export raises
    probe = Probe(scheduler, options, registry)
    probe.attach()
    thread = probe.start()
    until(lambda: probe.output.state is State.FAILED)
    assert "Duplicated" in probe.output.reason
    scheduler.run(Batch([Request()]))
    assert probe.timer.cycles == 1
    assert probe.timing.is_on
    assert "without --enable-metrics" in caplog.text
    (tmp_path / "stop").touch()
    thread.join(timeout=10)
    assert probe.timing.state is State.REMOVED, "the stop file must work without output, too"
    assert "forward_batch_generation" not in vars(scheduler.draft_worker)


def test_on_a_full_disk_new_metrics_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is mapped into memory and cannot grow ends the process that writes into it."""
    scheduler = engine(accepts=lambda batch: [2])
    probe, registry = start(scheduler)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    room = [0]
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=room[0], f_frsize=4096))
    scheduler.run(Batch([Request()]))
    probe.export()
    assert list(registry.collect()) == []
    room[0] = 1_000_000
    probe.export()
    cycles = registry.get_sample_value("specscope_cycles_total", RANKS | {"view": "requests"})
    assert (cycles, probe.output.is_on) == (1, True)
    assert caplog.text.count("is full") == 1


def until(happened: Callable[[], bool]) -> None:
    """Wait for what a thread is about to do."""
    deadline = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_stop_file_takes_everything_away(tmp_path: Path) -> None:
    scheduler = engine()
    processor = type(scheduler.batch_result_processor)
    probe, registry = start(scheduler, stop_file=tmp_path / "stop")
    scheduler.run(Batch([Request()]))
    (tmp_path / "stop").touch()
    probe.tend()
    assert "forward_batch_generation" not in vars(scheduler.draft_worker)
    assert "draft" not in vars(scheduler.draft_worker.draft_worker)
    assert "_resolve_spec_v2_tokens" not in vars(processor)
    scheduler.run(Batch([Request()]))
    probe.export()
    assert part_state(registry, "timing", **RANKS) == ["removed"]
    assert registry.get_sample_value("specscope_cycles_seen_total", RANKS) == 1


def test_a_forked_child_counts_nothing() -> None:
    """In a process of its own: forking this one would copy the threads of other tests."""
    code = (
        "import os, sys\n"
        "from tests.probe.standin import Batch, Request, engine\n"
        "from specscope_probe.options import Options\n"
        "from specscope_probe.probe import Probe\n"
        "scheduler = engine(); probe = Probe(scheduler, Options()); probe.attach()\n"
        "scheduler.run(Batch([Request()]))\n"
        "if os.fork() == 0:\n"
        "    scheduler.run(Batch([Request()]))\n"
        "    os._exit(0 if probe.timer.cycles == 1 else 1)\n"
        "status = os.waitstatus_to_exitcode(os.wait()[1])\n"
        "scheduler.run(Batch([Request()]))\n"
        "sys.exit(status or (0 if probe.timer.cycles == 2 else 2))\n"
    )
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'collectors'}"}
    outcome = subprocess.run([sys.executable, "-c", code], env=environment, check=False, cwd=root)
    assert outcome.returncode == 0


def busy_for_long(scheduler: Scheduler, probe: Probe) -> None:
    """Serve everything that makes label sets: batch sizes, depths, prefills, both clocks' worth."""
    worker = scheduler.draft_worker
    for depth in (1, 2, 5, 8):
        worker.speculative_num_draft_tokens = depth + 1
        worker.accepts = lambda batch, depth=depth: [index % (depth + 1) for index in range(len(batch.reqs))]
        for requests in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300):
            for mode in (ForwardMode.DECODE, ForwardMode.EXTEND):
                for _ in range(4):
                    scheduler.run(Batch([Request() for _ in range(requests)], mode))
    tally = probe.timer.tally
    for depth in (1, 2, 5, 8):
        for requests in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300):
            for kind in (SPECULATIVE, PREFILL, GAP):
                shape = tally.shape(kind, requests, depth + 1, "device")
                for _ in range(4):
                    tally.add(shape, (1.0, [0.1] * len(PHASES[kind])), 0.123456789)


@pytest.mark.parametrize(("tp_rank", "most"), [(0, MAX_BYTES_SPEAKER), (3, MAX_BYTES_OTHER)])
def test_the_output_stays_small(tp_rank: int, most: int) -> None:
    scheduler = engine()
    labels = {"engine_type": "unified", "tp_rank": tp_rank, "pp_rank": 0, "moe_ep_rank": 0, "dp_rank": 0}
    scheduler.metrics_collector = type("Collector", (), {"labels": labels})  # type: ignore[attr-defined]
    scheduler.tp_rank = tp_rank
    probe, registry = start(scheduler)
    probe.timer.tally = TimeTally(split_clock="device" if tp_rank == 0 else None)
    busy_for_long(scheduler, probe)
    probe.export()
    lines = [
        line
        for line in generate_latest(registry).decode().splitlines()
        if not line.startswith("#") and "_created" not in line.partition("{")[0]
    ]
    assert sum(len(line) + 1 for line in lines) < most


def test_settings_that_make_no_sense_are_told_and_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    found = read_options(
        {
            "SPECSCOPE_PROBE_BUDGET": "lots",
            "SPECSCOPE_PROBE_TIME_EVERY": "0",
            "SPECSCOPE_PROBE_STOP_FILE": "/x",
        }
    )
    assert (found.budget, found.time_every, found.stop_file) == (DEFAULT_BUDGET, 1, Path("/x"))
    assert caplog.text.count("is not between") == 2
    assert read_options({"SPECSCOPE_PROBE_TIME_EVERY": "10"}).time_every == 10
