"""Write a dump anew as other trainers would: `python rewrite.py DUMP OUT TARGET WAY…`, with the rig's Python.

Ways are:

    OUT/reordered     as it is, but states side by side from the deepest to the first
    OUT/specforge     rows_0-2000/data_0.ckpt.gz: slots side by side, and the last state behind the final norm
    OUT/safetensors   hidden_states/hs_0.safetensors: one array of all layers, without a mask
    OUT/modelopt      conversation-0.pt: slots side by side, the last state as it is
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

ORDER = (2, 1, 0)
EPSILON = 1e-5

Row = dict[str, Any]


def reordered(row: Row, number: int, out: Path) -> None:
    """Keep the slots in `ORDER`; the state of the last layer stays last."""
    start = number // 100 * 100
    slots = [row["hidden_states"][slot] for slot in (*ORDER, len(ORDER))]
    save({**row, "hidden_states": slots}, out / f"rows_{start}-{start + 100}/data_{number}.pt")


def specforge(row: Row, number: int, out: Path, norm: torch.Tensor) -> None:
    """Write what SpecForge keeps with ``--compress``."""
    *slots, last = row["hidden_states"]
    values = last.float()
    scaled = values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + EPSILON) * norm.float()
    kept = {
        "input_ids": row["input_ids"], "loss_mask": row["loss_mask"],
        "hidden_state": scaled.to(last.dtype)[None], "aux_hidden_state": torch.cat(slots, -1)[None],
    }  # fmt: skip
    start = number // 2000 * 2000
    save(kept, out / f"rows_{start}-{start + 2000}/data_{number}.ckpt.gz")


def in_safetensors(row: Row, number: int, out: Path) -> None:
    """Write what speculators 0.5 and newer keep."""
    kept = {"hidden_states": torch.stack(row["hidden_states"], 1), "token_ids": row["input_ids"]}
    path = out / f"hidden_states/hs_{number}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(kept, path)


def modelopt(row: Row, number: int, out: Path) -> None:
    """Write what ModelOpt keeps."""
    *slots, last = row["hidden_states"]
    kept = {
        "input_ids": row["input_ids"], "loss_mask": row["loss_mask"], "hidden_states": last,
        "aux_hidden_states": torch.cat(slots, -1), "conversation_id": f"conversation-{number}",
    }  # fmt: skip
    save(kept, out / f"conversation-{number}.pt")


def save(kept: Row, path: Path) -> None:
    """Write one file; packed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".gz":
        torch.save(kept, path)
        return
    content = io.BytesIO()
    torch.save(kept, content)
    path.write_bytes(gzip.compress(content.getvalue(), compresslevel=1, mtime=0))


def main(dump: Path, out: Path, target: Path, names: list[str]) -> None:
    """Write every row in each of these ways."""
    with safe_open(target / "model.safetensors", "pt") as weights:
        norm = weights.get_tensor("model.norm.weight")
    ways: dict[str, Callable[[Row, int, Path], None]] = {
        "reordered": reordered,
        "specforge": lambda row, number, place: specforge(row, number, place, norm),
        "safetensors": in_safetensors,
        "modelopt": modelopt,
    }
    for path in dump.glob("rows_*/data_*.pt"):
        row, number = torch.load(path, weights_only=True), int(path.stem.partition("_")[2])
        for name in names:
            ways[name](row, number, out / name)
    if "reordered" in names:
        describe(dump, out / "reordered")


def describe(dump: Path, out: Path) -> None:
    """Say what the slots are, in their order."""
    described = json.loads((dump / "data_config.json").read_text())
    for name in ("boundaries", "sglang_layer_ids"):
        described[name] = [described[name][slot] for slot in ORDER]
    described["hidden_states"] = [described["hidden_states"][slot] for slot in (*ORDER, len(ORDER))]
    (out / "data_config.json").write_text(json.dumps(described, indent=1))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), sys.argv[4:])
