"""Copy a dump with its slots in another order: `python reorder.py DUMP OUT 2 1 0`, with the rig's Python.

What a trainer leaves that puts states side by side from the deepest to the first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch


def main(dump: Path, out: Path, order: list[int]) -> None:
    """Write every row anew; the state of the last layer stays last."""
    described = json.loads((dump / "data_config.json").read_text())
    for name in ("boundaries", "sglang_layer_ids"):
        described[name] = [described[name][slot] for slot in order]
    described["hidden_states"] = [described["hidden_states"][slot] for slot in [*order, len(order)]]
    for path in sorted(dump.glob("rows_*/data_*.pt")):
        row = torch.load(path, weights_only=True)
        row["hidden_states"] = [row["hidden_states"][slot] for slot in [*order, len(order)]]
        place = out / path.relative_to(dump)
        place.parent.mkdir(parents=True, exist_ok=True)
        torch.save(row, place)
    (out / "data_config.json").write_text(json.dumps(described, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [int(slot) for slot in sys.argv[3:]])
