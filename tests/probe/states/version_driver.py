"""Run by `each_version.py` with a real SGLang of some version: states of its own workers' verify.

Control flow and results are the engine's, the target's states are made up.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tests.probe import version_driver as engine

from specscope_probe import install

H, LAYERS, ROWS, D = 16, [7, 2], 12, 4
ACCEPTED_ROWS = [0, 4, 5, 6, 8, 9, 10, 11]
CYCLES = 60


class StateRunner(engine.Runner):
    """A target that hands out two states side by side."""

    model_config = SimpleNamespace(hidden_size=H)
    model = SimpleNamespace(model=SimpleNamespace(layers_to_capture=LAYERS))
    turn = 0

    def forward(self, forward_batch: Any, pp_proxy_tensors: Any = None, **_: Any) -> Any:
        """Return outputs in the engine's form."""
        generator = torch.Generator().manual_seed(self.turn)
        self.turn += 1
        states = torch.randn(ROWS, 2 * H, generator=generator)
        logits = engine.Quiet(next_token_logits=torch.zeros(ROWS, 4), hidden_states=states)
        return engine.Quiet(logits_output=logits, can_run_graph=False)


def batch_of(turn: int) -> Any:
    """Return a batch whose verify has ids and positions."""
    batch = engine.batch_of(engine.ForwardMode.DECODE)
    forward_batch = batch.forward_batch
    forward_batch.spec_info = SimpleNamespace(draft_token_num=D)
    forward_batch.input_ids = torch.arange(ROWS) + turn
    forward_batch.positions = torch.arange(ROWS) + 10
    judged = batch.verify_input.verify()
    judged.accepted_indices = torch.tensor(ACCEPTED_ROWS)
    batch.verify_input.verify = lambda *_: judged
    return batch


def watch(kind: str, folder: Path) -> dict[str, Any]:
    """Return what was profiled of one worker class."""
    os.environ["SPECSCOPE_SPOOL"] = str(folder)
    target = engine.Target()
    target.model_runner = StateRunner()
    worker = engine.v2_worker(target) if kind == "v2" else engine.v1_worker(target)
    probe = install.attach(engine.scheduler_with(worker, target))
    assert probe is not None
    for turn in range(CYCLES):
        worker.forward_batch_generation(batch_of(turn))
    sampler = probe.states._listener
    sampler._pipeline._window_ends_ns = 1
    for _ in range(2):
        sampler._enter(time.perf_counter_ns(), (None,), {})
    deadline = time.monotonic() + 20
    while not probe.states.counts.files and time.monotonic() < deadline:
        time.sleep(0.01)
    probe.remove("the test is over")
    [path] = folder.glob("specscope-states-*")
    file = json.loads(gzip.decompress(path.read_bytes()))
    rows: dict[str, int] = {}
    for each in file["profiles"]:
        if each["slot"] == 0:
            rows[each["phase"]] = rows.get(each["phase"], 0) + each["rows"]
    profiled = probe.states.counts.samples["verify"] - probe.states.counts.dropped["no_limit"]
    return {
        "rows": rows,
        "profiled": profiled,
        "capture": file["capture"],
        "reason": probe.states.part.reason,
    }


def main(kinds: list[str]) -> dict[str, Any]:
    """Watch each kind of worker; return what was profiled."""
    from specscope_probe import loading

    os.environ["SPECSCOPE_PROBE_STATES_VERIFY_EVERY"] = "1"
    os.environ["SPECSCOPE_PROBE_STATES_FIRST_WINDOW_SECONDS"] = "3600"
    loading.forward_hook({})
    found = {}
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            found[kind] = watch(kind, Path(folder))
    return found
