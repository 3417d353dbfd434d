"""Run by `test_reduction.py` with the rig's Python: calibration over decoders of torch modules.

Layers are called as SGLang calls them: with the residual as an argument, or with a stream on the batch.
Prints as JSON how far profiles are from the residual stream, and why calibration refuses.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from prometheus_client import CollectorRegistry
from tests.probe.standin import Batch, ForwardMode, Request, engine

from specscope_probe.options import Options
from specscope_probe.probe import Probe

H, LAYERS, TOKENS = 32, 3, 60


class Layer(torch.nn.Module):
    """A block that adds something to the residual stream."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(H, H)


class OldLayer(Layer):
    """The residual is an argument."""

    def forward(self, positions: Any, hidden_states: Any, forward_batch: Any, residual: Any) -> Any:
        """Return (output, residual)."""
        residual = hidden_states if residual is None else hidden_states + residual
        return self.linear(residual), residual


class NewLayer(Layer):
    """The residual stands in a stream of the batch."""

    owed: Any = None

    def forward(
        self, positions: Any, hidden_states: Any, forward_batch: Any, capture_output: Any = None
    ) -> Any:
        """Return a handle of the output."""
        stream = forward_batch.residual_stream
        if stream.pending is None:
            stream.residual = hidden_states
        else:
            stream.residual = stream.pending.value + stream.residual
        output = self.linear(stream.residual)
        update = SimpleNamespace(is_plain_add=True)
        stream.pending = SimpleNamespace(value=output, owed=self.owed, update=update)
        return output


class Norm(torch.nn.Module):
    """The final norm."""

    def forward(self, hidden_states: Any, residual: Any) -> Any:
        """Return the normed sum."""
        return torch.nn.functional.normalize(hidden_states + residual, dim=-1)


class Decoder(torch.nn.Module):
    """The layer stack of a target."""

    def __init__(self, kind: type[Layer]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = torch.nn.Embedding(50, H)
        self.layers = torch.nn.ModuleList(kind() for _ in range(LAYERS))
        self.norm = Norm()

    def run(self, batch: Any, through_modules: bool = True) -> Any:
        """Run all layers."""
        call = (lambda module: module) if through_modules else (lambda module: module.forward)
        hidden, residual = self.embedding(batch.input_ids), None
        for layer in self.layers:
            if isinstance(layer, OldLayer):
                hidden, residual = call(layer)(batch.positions, hidden, batch, residual)
            else:
                hidden = call(layer)(batch.positions, hidden, batch)
        residual = batch.residual_stream.residual if residual is None else residual
        return call(self.norm)(hidden, residual)

    def stream(self, ids: Any) -> list[Any]:
        """Return boundaries 0 … n, the plain way."""
        found = [self.embedding(ids)]
        for layer in self.layers:
            found.append(found[-1] + layer.linear(found[-1]))
        return found


def serve(decoder: Decoder, folder: Path, *, through_modules: bool = True) -> tuple[Any, list[Any]]:
    """Prefill a few batches with a calibrating probe; return it and the ids of each batch."""
    os.environ.update(
        SPECSCOPE_SPOOL=str(folder), SPECSCOPE_PROBE_CALIBRATE="1", SPECSCOPE_PROBE_STATES_PREFILL_EVERY="1",
        SPECSCOPE_PROBE_STATES_FIRST_WINDOW_SECONDS="3600",
    )  # fmt: skip
    scheduler = engine()
    scheduler.draft_worker = None
    runner = scheduler.tp_worker.model_runner
    runner.model_config = SimpleNamespace(hidden_size=H)
    runner.model = SimpleNamespace(model=decoder)

    def forward(batch: Any) -> Any:
        with torch.inference_mode():
            decoder.run(batch, through_modules)
        return SimpleNamespace(
            logits_output=SimpleNamespace(hidden_states=None), can_run_graph=not through_modules
        )

    runner.forward = forward
    scheduler.tp_worker.forward_batch_generation = lambda batch: runner.forward(batch.forward_batch)
    probe = Probe(scheduler, Options(stop_file=Path("none"), budget=1.0), CollectorRegistry())
    probe.attach()
    batches = []
    for _ in range(10):
        ids = torch.randint(0, 50, (TOKENS,))
        batch = Batch([Request("a")], ForwardMode.EXTEND)
        batch.forward_batch = SimpleNamespace(  # type: ignore[attr-defined]
            forward_mode=ForwardMode.EXTEND, input_ids=ids, positions=torch.arange(TOKENS),
            extend_prefix_lens_cpu=[0], extend_seq_lens_cpu=[TOKENS],
            residual_stream=SimpleNamespace(residual=None, pending=None),
        )  # fmt: skip
        scheduler.tp_worker.forward_batch_generation(batch)
        batches.append(ids)
    return probe, batches


def calibrated(kind: type[Layer]) -> dict[str, Any]:
    """Return by how much Σh² of each boundary is off, and what else came out."""
    decoder = Decoder(kind)
    with tempfile.TemporaryDirectory() as name:
        probe, batches = serve(decoder, Path(name))
        listener = probe.states._listener
        listener._pipeline._window_ends_ns = 1
        for _ in range(2):
            listener._enter(time.perf_counter_ns(), (Batch([]),), {})
        deadline = time.monotonic() + 20
        while not probe.states.counts.files and time.monotonic() < deadline:
            time.sleep(0.01)
        [path] = Path(name).glob("specscope-states-*")
        file = json.loads(gzip.decompress(path.read_bytes()))
        probe.remove("over")
    hooks = sum(len(module._forward_pre_hooks) for module in decoder.modules())
    others = {each["boundary"]: each for each in file["profiles"] if each["row_class"] == "other"}
    used = probe.states.counts.samples["calibration"] - probe.states.counts.dropped["no_limit"]
    wanted, seen = np.zeros((LAYERS + 1, H)), set()
    for number, ids in enumerate(batches):
        stand = list(enumerate(ids.tolist()))
        is_new = torch.tensor([place not in seen for place in stand])
        seen |= set(stand) if number >= len(batches) - used else set()
        rows = torch.arange(len(ids))[is_new & (torch.arange(len(ids)) >= 4)]
        if number >= len(batches) - used:
            with torch.inference_mode():
                streams = [each[rows].double().square().sum(0).numpy() for each in decoder.stream(ids)]
            wanted += np.stack(streams)
    found = np.stack([decoded(others[boundary]) for boundary in range(LAYERS + 1)])
    return {
        "off": float(np.abs(found / wanted - 1).max()),
        "rows": others[0]["rows"],
        "expected_rows": used * (TOKENS - 4),
        "phases": sorted({each["phase"] for each in file["profiles"]}),
        "slots": [each.get("slot") for each in file["profiles"]],
        "capture": file["capture"],
        "hooks_left": hooks,
        "files": [file],
    }


def decoded(profile: dict[str, Any]) -> Any:
    """Return Σh² of a profile."""
    return np.frombuffer(b64decode(profile["sum_of_squares"]), "<f4").astype(np.float64)


def refused(kind: type[Layer], **how: Any) -> list[str]:
    """Return state and reason of the part."""
    with tempfile.TemporaryDirectory() as name:
        probe, _ = serve(Decoder(kind), Path(name), **how)
        return [probe.states.part.state, probe.states.part.reason]


class OwingLayer(NewLayer):
    """Its sum over ranks is left to the next layer."""

    owed = object()


if __name__ == "__main__":
    seen = {
        "old": calibrated(OldLayer),
        "new": calibrated(NewLayer),
        "owing": refused(OwingLayer),
        "graph": refused(OldLayer, through_modules=False),
    }
    sys.stdout.write("SEEN " + json.dumps(seen) + "\n")
