"""Runs in the rig's Python, which has torch: `python rows_driver.py TARGET DUMP ROWS REQUESTS`."""

from __future__ import annotations

import sys
from pathlib import Path

from specscope_collectors.references.torch_replay import ReplayOrder, replay
from specscope_collectors.references.torch_target import Target


def main(model: Path, dump: Path, rows: Path, requests: int) -> None:
    """Keep rows of a few requests at all boundaries."""
    order = ReplayOrder(
        dumps=(dump,), name="rows", made_ms=1_790_000_000_000, model="", budget_rows=64 * requests, seed=1,
        rows_file=rows,
    )  # fmt: skip
    replay(order, Target(model, "bfloat16", threads=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
