"""Run by `test_gpu.py` with a Python whose torch has a CUDA device: what only such a device can show.

While the engine's cycles run, torch turns every call that waits for the device into an error. Prints as JSON
how far reductions are from float64, what sampling costs the device and the host, and what the events gave.
With ``cpu`` as its argument it does the same without a device, to show that it would run.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from tests.benchmarks.states_cost_driver import NEVER, REQUESTS, ROWS, SLOTS, STORY, Carried
from tests.probe.standin import Batch, Request
from tests.probe.states.torch_driver import reductions

CYCLES, CYCLES_ON_CPU = 200, 12
"""A CPU takes long for them, and has nothing to show."""


class Strict:
    """While it lasts, a call that waits for the device raises."""

    def __init__(self, device: str) -> None:
        self._is_device = device != "cpu"

    def __enter__(self) -> None:
        if self._is_device:
            torch.cuda.set_sync_debug_mode("error")

    def __exit__(self, *_: object) -> None:
        if self._is_device:
            torch.cuda.set_sync_debug_mode("default")


def serve(device: str, verify_every: str) -> dict[str, Any]:
    """Run cycles with the probe; return what it measured of itself and of them."""
    batch = Batch([Request(str(index)) for index in range(REQUESTS)])
    carried = Carried(STORY, verify_every, device)
    states, timer = carried.probe.states, carried.probe.timer
    took_us, cycles = [], CYCLES if device != "cpu" else CYCLES_ON_CPU
    for _ in range(cycles):
        began = time.perf_counter_ns()
        with Strict(device):
            carried.scheduler.run(batch)
        took_us.append((time.perf_counter_ns() - began) / 1000)
        drain(carried, device)
    with Strict(device):
        carried.scheduler.run(batch)
    samples = states.counts.samples["verify"]
    seconds = states.counts.device_seconds
    return {
        "parts": {part.name: str(part.state) for part in carried.probe.parts},
        "reasons": [part.reason for part in carried.probe.parts if part.reason],
        "samples": samples,
        "dropped": dict(states.counts.dropped),
        "rows": sum(states.counts.rows.values()),
        "device_ms": None if seconds is None else 1_000 * seconds / max(samples, 1),
        "host_us": statistics.median(took_us[cycles // 2 :]),
        "timed": {
            shape.kind: sums.cycles for shape, sums in timer.tally.sums.items() if shape.clock == "device"
        },
    }


def drain(carried: Carried, device: str) -> None:
    """Let the device and the thread beside come to an end between cycles, as they do in 15 ms."""
    if device != "cpu":
        torch.cuda.synchronize()
    reducer = carried.reducer
    deadline = time.monotonic() + 20
    while reducer is not None and len(reducer._free) < 7:
        assert time.monotonic() < deadline
        time.sleep(0.0002)


def norms_off(device: str) -> float:
    """Return how far ln‖h‖ of the story's shape is from float64, absolutely."""
    carried = Carried(STORY, "1", device)
    batch = Batch([Request(str(index)) for index in range(REQUESTS)])
    with Strict(device):
        carried.scheduler.run(batch)
    if device != "cpu":
        torch.cuda.synchronize()
    [taken] = carried.probe.states._listener._pipeline._waiting
    runner = carried.scheduler.tp_worker.model_runner
    states = runner.output.logits_output.hidden_states.double().cpu().view(ROWS, SLOTS, STORY)
    found = taken.buffer.ln_norms[:ROWS].double()
    return float((found - torch.linalg.vector_norm(states, dim=-1).log()).abs().max())


def main(device: str) -> None:
    """Measure."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPECSCOPE_SPOOL"] = folder
        token_ids = Path(folder, "token_ids.json")
        token_ids.write_text(json.dumps(list(range(64))))
        os.environ["SPECSCOPE_PROBE_TOKEN_IDS"] = str(token_ids)
        found = {
            "device": torch.cuda.get_device_name() if device != "cpu" else "cpu",
            "off": reductions(device),
            "norms_off": norms_off(device),
            "sampled": serve(device, "1"),
            "unsampled": serve(device, NEVER),
        }
    sys.stdout.write("SEEN " + json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
