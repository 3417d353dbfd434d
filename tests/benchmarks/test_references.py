"""Reading a training dump must cost what its rows cost, not what its files weigh.

Files are samples of 2,048 tokens of a model with H = 7,168 (three slots and the last state, bfloat16): 112
MiB each, as speculators 0.3–0.4 writes them. Times are of the page cache, which is where a reader that is too
slow shows; from a disk, the rows that are read are what counts.

Measured on a shared machine with two cores:

=========================================================  ==========================
open a sample and take norms of 64 rows × 3 slots          1.9 ms
read it whole and widen it to float32                      140 to 330 ms (72 to 150 ×)
reference of 1,000 files (64,000 rows out of 112 GiB)      6 s of CPU, 204 MB, 1.1 MB
=========================================================  ==========================
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tests.support.dumps import T, torch_bytes, widened, write

from specscope_collectors.references.choosing import choose_rows
from specscope_collectors.references.opening import open_dump
from specscope_collectors.references.reading import states_of
from specscope_collectors.references.shapes import classify
from specscope_collectors.references.sums import States

TOKENS, H, STATES = 2_048, 7_168, 4
FILES, DISTINCT = 1_000, 4
LEAST_RATIO, MOST_SECONDS, MOST_MEGABYTES = 20.0, 10.0, 300.0
ROUNDS = 5

PROGRAM = """
import json, sys, time
from pathlib import Path
from specscope_collectors.references.building import Building, Order
from specscope_collectors.references.document import packed
began, busy = time.monotonic(), time.process_time()
reference = Building(Order(root=Path(sys.argv[1]), name="bench", made_ms=1_790_000_000_000)).run()
content = packed(reference)
took = time.monotonic() - began
[peak] = [int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps([time.process_time() - busy, took, peak, reference.requests, reference.rows, len(content)]))
"""


def sample(seed: int) -> bytes:
    """Return a file of one request."""
    random = np.random.default_rng(seed)
    ids = random.zipf(1.3, TOKENS).clip(max=150_000).astype(np.int64)
    noise = (random.integers(0, 1 << 16, (TOKENS, H), np.uint16) & 0x803F) + 0x3F80
    states = [T((noise + (place << 8)).astype(np.uint16), "bfloat16") for place in range(STATES)]
    mask = (np.arange(TOKENS) > TOKENS // 3).astype(np.int64)
    return torch_bytes({"input_ids": T(ids, "int64"), "hidden_states": states, "loss_mask": T(mask, "int64")})


def by_rows(path: Path) -> float:
    """Open a sample and return the sum of 64 × 3 norms."""
    opened = open_dump(path)
    states = states_of(opened, classify(opened), choose_rows(TOKENS, path.name, 0))
    return float(sum(States(each).ln_norms.sum() for each in islice(states, 3)))


def whole(path: Path) -> float:
    """Read a sample whole and widen its states to float32, as a full load does before arithmetic."""
    content = np.frombuffer(path.read_bytes(), np.uint8)
    states = content[: TOKENS * H * STATES * 2].view(np.uint16)
    return float(widened(states)[0])


def best(work: Callable[[Path], float], path: Path) -> float:
    """Return seconds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work(path)
        times.append(time.perf_counter() - began)
    return min(times)


@pytest.mark.benchmark
def test_rows_are_read_without_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "data_0.pt", sample(1))
    seconds = {work.__name__: best(work, path) for work in (whole, by_rows)}
    ratio = seconds["whole"] / seconds["by_rows"]
    print(f"\n{path.stat().st_size:,} bytes: {seconds}, {ratio:.0f} ×")  # noqa: T201 — the figures are the point
    assert ratio >= LEAST_RATIO


@pytest.mark.benchmark
def test_a_thousand_files_take_seconds_and_little_memory(tmp_path: Path) -> None:
    for number in range(DISTINCT):
        write(tmp_path / f"rows_0-2000/data_{number}.pt", sample(number))
    for number in range(DISTINCT, FILES):
        folder = tmp_path / f"rows_{number // 100 * 100}-{number // 100 * 100 + 100}"
        folder.mkdir(exist_ok=True)
        os.link(tmp_path / f"rows_0-2000/data_{number % DISTINCT}.pt", folder / f"data_{number}.pt")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, wall, megabytes, requests, rows, size = json.loads(said)
    figures = f"{seconds:.1f} s of CPU ({wall:.1f} s passed), {megabytes:.0f} MB, result {size:,} bytes"
    print(f"\n{requests} files, {rows} rows: {figures}")  # noqa: T201
    assert (requests, rows) == (FILES, 64 * FILES)
    assert seconds <= MOST_SECONDS
    assert megabytes <= MOST_MEGABYTES
    assert size <= 5_000_000
