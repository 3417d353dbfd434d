"""Run by `test_reduction.py` with the rig's Python: the whole part over a stand-in engine with real tensors.

The runner's states are known, so what must come out is known. Prints as JSON what came out.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from prometheus_client import CollectorRegistry
from tests.probe.standin import Batch, ForwardMode, Request, Runner, Worker, engine

from specscope_probe.options import Options
from specscope_probe.probe import Probe

H, VOCABULARY, REQUESTS, D = 64, 40, 4, 4
GENERATOR = torch.Generator().manual_seed(11)
EMBEDDING = torch.randn(VOCABULARY, H, generator=GENERATOR).bfloat16()

States = Callable[[Any, Any], Any]


def healthy(ids: Any, positions: Any) -> Any:
    """Return states that depend on the position too, and grow at position 0."""
    mixed = EMBEDDING[ids].float() + 0.4 * torch.sin(positions.float().unsqueeze(1) * torch.arange(1, H + 1))
    massive = torch.where(positions.unsqueeze(1) == 0, 300.0, 1.0)
    return (mixed * massive).bfloat16()


def embedding(ids: Any, positions: Any) -> Any:
    """Return boundary 0."""
    return EMBEDDING[ids]


class StateRunner(Runner):
    """A target whose three slots are made by functions of ids and positions."""

    def __init__(self, slots: list[States], layers: list[int]) -> None:
        super().__init__(lambda name: None)
        self.slots = slots
        self.model_config = SimpleNamespace(hidden_size=H)
        decoder = SimpleNamespace(layers_to_capture=layers, layers=[None] * 8)
        self.model = SimpleNamespace(model=decoder)
        self.last: Any = None

    def forward(self, forward_batch: Any, skip: bool = False) -> Any:
        """Return states of all slots side by side."""
        parts = [slot(forward_batch.input_ids, forward_batch.positions) for slot in self.slots]
        states = torch.cat(parts, -1)
        self.last = weakref.ref(states)
        return SimpleNamespace(logits_output=SimpleNamespace(hidden_states=states), can_run_graph=False)


class StateWorker(Worker):
    """EAGLEWorkerV2 in outline, with tensors."""

    turn = 0

    def forward_batch_generation(self, batch: Batch, on_publish: Any = None) -> Any:
        """Run one cycle."""
        self.turn += 1
        if batch.forward_mode is ForwardMode.EXTEND:
            prefixes, lengths = [0] * REQUESTS, [10] * REQUESTS
            given = {"extend_prefix_lens_cpu": prefixes, "extend_seq_lens_cpu": lengths}
            positions = torch.arange(10).repeat(REQUESTS)
            self.target_worker.model_runner.forward(self.batch(ForwardMode.EXTEND, positions, **given))
            return SimpleNamespace(accept_lens=None)
        return self.verify(batch)

    def verify(self, batch: Batch, grammar_barrier: Any = None) -> Any:
        """Accept 1 to D rows."""
        base = torch.tensor([20, 40, 60, 80]) + 3 * self.turn
        positions = (base.unsqueeze(1) + torch.arange(D)).reshape(-1)
        given = {"spec_info": SimpleNamespace(draft_token_num=D)}
        self.target_worker.model_runner.forward(
            forward_batch=self.batch(ForwardMode.TARGET_VERIFY, positions, **given)
        )
        lengths = 1 + (torch.arange(REQUESTS) + self.turn) % D
        return SimpleNamespace(
            accept_lens=lengths.to(torch.int32), num_correct_drafts_per_req_cpu=(lengths - 1).tolist()
        )

    def batch(self, mode: ForwardMode, positions: Any, **more: Any) -> Any:
        """Return a forward batch with ids of its own."""
        ids = torch.randint(0, VOCABULARY, positions.shape, generator=GENERATOR)
        return SimpleNamespace(forward_mode=mode, input_ids=ids, positions=positions, **more)


def run(slots: list[States], layers: list[int], tp_rank: int, **environment: str) -> dict[str, Any]:
    """Serve for a while with that target; return files, counts and what was left behind."""
    GENERATOR.manual_seed(12)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            {
                "SPECSCOPE_SPOOL": folder,
                "SPECSCOPE_PROBE_STATES_VERIFY_EVERY": "1",
                "SPECSCOPE_PROBE_STATES_PREFILL_EVERY": "1",
                "SPECSCOPE_PROBE_STATES_FIRST_WINDOW_SECONDS": "3600",
                **environment,
            }
        )
        scheduler = engine()
        scheduler.tp_rank = tp_rank
        runner = StateRunner(slots, layers)
        scheduler.tp_worker.model_runner = runner
        worker = scheduler.draft_worker
        scheduler.draft_worker = StateWorker(worker.spend, worker.target_worker, worker.draft_worker)
        probe = Probe(scheduler, Options(stop_file=Path("none"), budget=1.0), CollectorRegistry())
        probe.attach()
        requests = [Request(f"r{index}") for index in range(REQUESTS - 1)] + [Request("HEALTH_CHECK_1")]
        for index in range(40):
            mode = ForwardMode.EXTEND if index % 8 == 0 else ForwardMode.DECODE
            scheduler.draft_worker.forward_batch_generation(Batch(requests, mode))
            let_it_finish(probe.states._listener)
        return finished(probe, scheduler, runner, requests, Path(folder))


def let_it_finish(listener: Any) -> None:
    """Wait for the thread; so fast an engine would leave it without buffers."""
    deadline = time.monotonic() + 20
    while listener._pipeline is not None and len(listener._pipeline.reducer._free) < 7:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def finished(probe: Any, scheduler: Any, runner: Any, requests: Any, folder: Path) -> dict[str, Any]:
    """End the window, wait for the thread, and return what came out."""
    states = probe.states
    dead = runner.last() is None
    listener = states._listener
    if states.part.is_on and listener._pipeline is not None:
        listener._pipeline._window_ends_ns = 1
        for _ in range(2):
            listener._enter(time.perf_counter_ns(), (Batch(requests),), {})
            listener._forget()
        deadline = time.monotonic() + 20
        while probe.rank.is_speaker and not states.counts.files and time.monotonic() < deadline:
            time.sleep(0.01)
    probe.export()
    paths = sorted(folder.glob("specscope-states-*"))
    files = [json.loads(gzip.decompress(path.read_bytes())) for path in paths]
    return {
        "files": files,
        "state": states.part.state,
        "reason": states.part.reason,
        "counts": {
            name: dict(getattr(states.counts, name)) for name in ("samples", "rows", "dropped", "invariants")
        },
        "check": [states.counts.check_sample, list(states.counts.check_ln_norms)],
        "released": dead,
    }


def main() -> None:
    """Run all cases."""
    cases: dict[str, tuple[list[States], list[int], dict[str, str]]] = {
        "healthy": ([healthy] * 3, [2, 4, 6], {}),
        "embedding": ([embedding, healthy, healthy], [0, 4, 6], {}),
        "duplicate ids": ([healthy, healthy], [2, 4, 4], {}),
        "narrow": ([lambda ids, positions: EMBEDDING[ids][:, : H // 2]], [2], {}),
        "broken": ([healthy, lambda ids, positions: EMBEDDING[ids] * float("nan"), healthy], [2, 4, 6], {}),
        "half zero": ([lambda ids, positions: EMBEDDING[ids] * (ids % 2).unsqueeze(1), healthy], [2, 4], {}),
        "sparse": ([healthy] * 3, [2, 4, 6], {"SPECSCOPE_PROBE_STATES_VERIFY_EVERY": "5"}),
    }
    found = {name: run(slots, layers, 0, **more) for name, (slots, layers, more) in cases.items()}
    found["second rank"] = run([healthy] * 3, [2, 4, 6], 1)
    sys.stdout.write("SEEN " + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
