"""Write short training data as four trainers would: `formats.py DUMP OUT TARGET`, with the rig's Python.

Of each text the first `TOKENS` are kept, so few that all rows are read, whatever the files are called.
OUT/hybrid is laid out as DUMP is, and beside it stand the other ways of `rewrite.py`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import rewrite
import torch

TOKENS = 64
WAYS = ["specforge", "safetensors", "modelopt"]


def first(row: rewrite.Row) -> rewrite.Row:
    """Return the beginning of a text."""
    return {
        "input_ids": row["input_ids"][:TOKENS].clone(), "loss_mask": row["loss_mask"][:TOKENS].clone(),
        "hidden_states": [each[:TOKENS].clone() for each in row["hidden_states"]],
    }  # fmt: skip


def main(dump: Path, out: Path, target: Path) -> None:
    """Write all four."""
    for path in dump.glob("rows_*/data_*.pt"):
        kept = first(torch.load(path, weights_only=True))
        rewrite.save(kept, out / "hybrid" / path.relative_to(dump))
    shutil.copy(dump / "data_config.json", out / "hybrid")
    rewrite.main(out / "hybrid", out, target, WAYS)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
