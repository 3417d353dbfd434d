"""Copies of the head with one fault: other capture layers, or slots in another order."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.real_model.install import HEAD

FC = "fc.weight"
"""[H, slots · H] in bfloat16: one block of columns for each slot."""


def faulty_head(
    folder: Path, *, ids: Sequence[int] | None = None, slots: Sequence[int] | None = None
) -> Path:
    """Write a copy of the head and return its folder.

    ``ids`` are other layers to capture (an id v is boundary v + 1; the weights stay); ``slots`` is another
    order of the blocks of `FC`. Writing the ids in another order is no fault: engines capture by depth.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((HEAD / "config.json").read_text())
    if ids is not None:
        config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = list(ids)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    weights = (HEAD / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights if slots is None else with_slots(weights, slots))
    return folder


def with_slots(weights: bytes, slots: Sequence[int]) -> bytes:
    """Return a safetensors file whose `FC` has its blocks in another order."""
    (header_bytes,) = struct.unpack("<Q", weights[:8])
    entry = json.loads(weights[8 : 8 + header_bytes])[FC]
    assert entry["dtype"] == "BF16"
    first, last = (8 + header_bytes + offset for offset in entry["data_offsets"])
    rows, width = entry["shape"]
    blocks = np.frombuffer(weights[first:last], "<u2").reshape(rows, len(slots), width // len(slots))
    return weights[:first] + np.ascontiguousarray(blocks[:, list(slots)]).tobytes() + weights[last:]
