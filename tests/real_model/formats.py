"""Lay training data out as four tools do: `python formats.py MODEL DUMP FOLDER`, with the rig's Python.

    FOLDER/hybrid/rows_0-100/data_0.pt                  as it was made: 4 × [T, H]
    FOLDER/specforge/rows_0-2000/data_0.ckpt            the last state behind the norm; some are gzip'd
    FOLDER/speculators/hidden_states/hs_0.safetensors   of 0.5 and newer: [T, 4, H], no mask
    FOLDER/angelslim/rows_0-5000/data_0.ckpt            a batch of one, slots side by side

Of each text the first `TOKENS` are kept: so few that every row is read, whatever the files are called.
"""

from __future__ import annotations

import gzip
import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

TOKENS = 64
EPSILON = 1e-5
Row = dict[str, Any]


def rows_of(dump: Path) -> Iterator[tuple[int, Row]]:
    """Yield the number and the beginning of each text."""
    for path in sorted(dump.rglob("data_*.pt")):
        row = torch.load(path, weights_only=True)
        states = [each[:TOKENS].clone() for each in row["hidden_states"]]
        ids, mask = row["input_ids"][:TOKENS].clone(), row["loss_mask"][:TOKENS].clone()
        yield (
            int(path.stem.removeprefix("data_")),
            {"input_ids": ids, "hidden_states": states, "loss_mask": mask},
        )


def final_norm(model: Path) -> torch.Tensor:
    """Return the weight of the target's final norm."""
    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            if "model.norm.weight" in set(file.keys()):
                weight: torch.Tensor = file.get_tensor("model.norm.weight").float()
                return weight
    raise ValueError(f"{model} has no final norm")


def normed(states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return states behind the final norm."""
    values = states.float()
    scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + EPSILON)
    return (values * scale * weight).to(states.dtype)


def specforge(row: Row, weight: torch.Tensor) -> Row:
    """Return SpecForge's sample."""
    states = row["hidden_states"]
    return {
        "input_ids": row["input_ids"], "loss_mask": row["loss_mask"],
        "hidden_state": normed(states[3], weight)[None], "aux_hidden_state": torch.cat(states[:3], -1)[None],
    }  # fmt: skip


def angelslim(row: Row) -> Row:
    """Return AngelSlim's sample."""
    states = row["hidden_states"]
    return {
        "input_ids": row["input_ids"][None], "loss_mask": row["loss_mask"][None],
        "hidden_states": torch.cat(states[:3], -1)[None], "target_hiddens": states[3][None],
    }  # fmt: skip


def save(path: Path, content: Row) -> None:
    """Write a file of torch, gzip'd where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".gz":
        torch.save(content, path)
        return
    target = io.BytesIO()
    torch.save(content, target)
    path.write_bytes(gzip.compress(target.getvalue(), 1))


def main(model: Path, dump: Path, folder: Path) -> None:
    """Write all four."""
    weight = final_norm(model)
    (folder / "speculators/hidden_states").mkdir(parents=True)
    (folder / "hybrid").mkdir()
    shutil.copy(dump / "data_config.json", folder / "hybrid")
    for number, row in rows_of(dump):
        save(folder / f"hybrid/rows_0-100/data_{number}.pt", row)
        end = "ckpt" if number % 3 else "ckpt.gz"
        save(folder / f"specforge/rows_0-2000/data_{number}.{end}", specforge(row, weight))
        save(folder / f"angelslim/rows_0-5000/data_{number}.ckpt", angelslim(row))
        states = torch.stack(row["hidden_states"], 1).contiguous()
        path = folder / f"speculators/hidden_states/hs_{number}.safetensors"
        save_file({"hidden_states": states, "token_ids": row["input_ids"]}, path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
