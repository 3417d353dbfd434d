"""Windows of state profiles of a running engine, and the same states in plain torch."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.sglang_cpu.environment import one_thread
from tests.support.rig import Answer, RunningRig

PLAIN = Path(__file__).resolve().parents[1] / "probe/states/plain_driver.py"
WINDOW_SECONDS = 1.0
WAIT_SECONDS = 120.0

Profile = dict[str, Any]
File = dict[str, Any]


def sampling_all(spool: Path) -> dict[str, str]:
    """Return what lets the probe profile every forward, in short windows."""
    return {
        "SPECSCOPE_SPOOL": str(spool),
        "SPECSCOPE_PROBE_STATES_VERIFY_EVERY": "1",
        "SPECSCOPE_PROBE_STATES_PREFILL_EVERY": "1",
        "SPECSCOPE_PROBE_STATES_WINDOW_SECONDS": str(WINDOW_SECONDS),
        "SPECSCOPE_PROBE_STATES_FIRST_WINDOW_SECONDS": str(WINDOW_SECONDS),
    }


@dataclass(frozen=True, slots=True)
class Watched:
    """An engine whose every forward is sampled, and the windows of its states."""

    running: RunningRig
    spool: Path

    def files(self) -> list[File]:
        """Return what has been written so far."""
        paths = sorted(self.spool.glob("specscope-states-*.json.gz"))
        return [json.loads(gzip.decompress(path.read_bytes())) for path in paths]

    def sampled(
        self, send: Callable[[], list[Answer]], end: Callable[[], object]
    ) -> tuple[list[Answer], list[File]]:
        """Send requests; return their answers and the windows that hold exactly their rows.

        ``end`` sends something more: a window ends when a cycle begins.
        """
        time.sleep(1.2 * WINDOW_SECONDS)
        began_ms = time.time() * 1000
        answers = send()
        time.sleep(1.2 * WINDOW_SECONDS)
        ended_ms = time.time() * 1000
        end()
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            found = [each for each in self.files() if began_ms < each["profiles"][0]["time_ms"] <= ended_ms]
            if found and self.files()[-1]["created_ms"] >= ended_ms:
                return answers, found
            time.sleep(0.2)
        raise AssertionError("no window was written")


def profiles(files: list[File], phase: str, slot: int) -> list[Profile]:
    """Return the profiles of all classes of one place."""
    return [
        each for file in files for each in file["profiles"] if (each["phase"], each["slot"]) == (phase, slot)
    ]


def rows(files: list[File], phase: str, slot: int, *classes: str) -> int:
    """Return how many rows were profiled, of these classes or of all."""
    return sum(
        each["rows"] for each in profiles(files, phase, slot) if not classes or each["row_class"] in classes
    )


def plain_states(
    python: Path, model: Path, texts: Sequence[tuple[str, list[int]]], boundaries: Sequence[int]
) -> list[Any]:
    """Return [boundaries, tokens, H] of each (prompt, output ids), by transformers in bfloat16."""
    command = [str(python), str(PLAIN), str(model), *map(str, boundaries)]
    content = json.dumps([{"prompt": prompt, "output": output} for prompt, output in texts])
    outcome = subprocess.run(
        command, input=content, capture_output=True, text=True, check=False, timeout=300, env=one_thread()
    )
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return [np.array(each) for each in json.loads(outcome.stdout.splitlines()[-1])]
