"""Files as the probe writes them, and a job with its surroundings."""

from __future__ import annotations

import asyncio
import gzip
import json
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.collectors.runner.engine import MemorySink

from specscope_collectors.board import Board, Watched
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext
from specscope_collectors.observations import Launch, Target
from specscope_collectors.sources.probe.job import Config, build

T0 = 1_772_366_400_000
SERVER = "gpu1"
SEED = 123_456_789
H = 8


def floats(*shape: int) -> str:
    """Return an array of that shape as JSON holds it."""
    return b64encode(np.arange(np.prod(shape), dtype="<f4").tobytes()).decode()


def profile(**changes: Any) -> dict[str, Any]:
    """Return a profile of ten rows."""
    return {
        "type": "state_profile", "time_ms": T0 + 1, "span_ms": 60_000, "labels": {"tp_rank": "0"},
        "phase": "verify_accepted", "row_class": "other", "slot": 1, "boundary": 30, "hidden_size": H,
        "rows": 10, "requests": 3,
        "ln_norms": {
            "sum": 30.0, "sum_of_squares": 91.0, "minimum": 2.9, "maximum": 3.2,
            "bins": {"145": 4, "150": 6}, "bin_width": 0.02,
        },
        "token_ids": [5, 9], "token_rows": [6, 3], "token_directions": floats(2, 4), "projection": "g-4-1",
        "direction_sum": floats(H), "direction_sum_of_squares": floats(H), "sum_of_squares": floats(H),
        "invariants": {"zero_rows": 0},
        **changes,
    }  # fmt: skip


def content(**changes: Any) -> dict[str, Any]:
    """Return the content of a file."""
    return {
        "format": 1, "created_ms": T0 + 2, "rank": {"tp_rank": "0"}, "engine_version": "0.5.23",
        "model_class": "LlamaForCausalLM", "probe_version": "0.1.0", "started_ms": T0, "random_seed": SEED,
        "capture": {
            "layers": [2, 30, 57], "boundaries": [2, 30, 57], "rule": "layer i hands out its input",
            "hidden_size": H, "width": 3 * H, "draft_layers": [1, 29, 56], "is_calibration": False,
        },
        "sink_limits": [3.0, 4.0, None],
        "profiles": [profile(), profile(slot=2, boundary=57)],
        "rows": [
            {"phase": "prefill", "slot": 0, "position": 0, "norm": 2.5, "first_values": [1.0, None, 0.0]}
        ],
        **changes,
    }  # fmt: skip


@dataclass
class World:
    """A spool folder, a sink, a board and a clock that tests turn."""

    spool: Path
    pool: ThreadPoolExecutor
    sink: MemorySink = field(default_factory=MemorySink)
    board: Board = field(default_factory=Board)
    now_ms: int = T0 + 1_000

    def launch(self, key: str = "a1", time_ms: int = T0, seed: int | None = SEED) -> None:
        """Say that the server was launched."""
        target = Target(name=SERVER, base_url="http://gpu1:30000")
        launch = Launch(key=key, time_ms=time_ms, engine="sglang", config={"random_seed": seed})
        self.board.tell(Watched(target, launch, frozenset()))

    def write(self, name: str = "1", whole: dict[str, Any] | bytes | None = None) -> Path:
        """Put a file into the spool."""
        path = self.spool / f"specscope-states-{name}.json.gz"
        data = content() if whole is None else whole
        path.write_bytes(data if isinstance(data, bytes) else gzip.compress(json.dumps(data).encode()))
        return path

    def steps(self, count: int = 1) -> float:
        """Step a new job so often, as after a restart; return its last wait."""
        context = JobContext(
            sink=self.sink, options=CollectorOptions(), clock=lambda: self.now_ms,
            monotonic=lambda: self.now_ms / 1_000, pool=self.pool, board=self.board,
        )  # fmt: skip

        async def go() -> float:
            [job] = build(Config(spool=str(self.spool), server=SERVER), context)
            try:
                for _ in range(count):
                    wait = await job.step()
            finally:
                await job.close()
            return wait

        return asyncio.run(go())

    def left(self) -> list[str]:
        """Return what lies in the spool."""
        return sorted(path.name for path in self.spool.iterdir() if path.is_file())
