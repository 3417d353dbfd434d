"""Make a reference of all boundaries and rows for paired replays, with the rig's Python:
`python replay.py MODEL DUMP OUT TOKEN_IDS ROWS`.

What `specscope reference replay-torch --rows ROWS` does, where only the rig has torch. The project's folder
of collectors must be on ``PYTHONPATH``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from specscope_collectors.references.document import packed
from specscope_collectors.references.torch_replay import ReplayOrder, replay
from specscope_collectors.references.torch_target import Target

ROWS, SEED = 2_048, 1


def main(model: Path, dump: Path, out: Path, token_ids: Path, rows: Path) -> None:
    """Replay the texts of a dump and write both."""
    order = ReplayOrder(
        dumps=(dump,), name=out.name.partition(".")[0], made_ms=int(time.time() * 1000), model=model.name,
        budget_rows=ROWS, seed=SEED, token_ids=tuple(json.loads(token_ids.read_text())),
        rows_file=rows,
    )  # fmt: skip
    out.write_bytes(packed(replay(order, Target(model, "float32", threads=1))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
