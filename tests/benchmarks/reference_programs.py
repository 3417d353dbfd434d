"""Run by `test_references.py`, each in a process of its own: `reference_programs.py WHAT PATH` prints JSON.

``load``: torch.load of a file, cold and cached. ``build``: a reference of a dump. ``read``: the rows alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS = 5
KINDS = ("cold", "cached")


def queued() -> float:
    """Return seconds in which this thread could have run, and others had the processors."""
    return int(Path("/proc/thread-self/schedstat").read_text("ascii").split()[1]) / 1e9


def from_disk() -> int:
    """Return how many bytes this process has read from the disk."""
    [found] = [line for line in Path("/proc/self/io").read_text("ascii").splitlines() if "read_bytes" in line]
    return int(found.split()[1])


def drop(path: Path) -> None:
    """Let the system forget what it has kept of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fastest(work: Any, path: Path, kind: str) -> float:
    """Return how long the fastest of some readings takes, without the time in which others were served."""
    times = []
    for _ in range(ROUNDS):
        if kind == "cold":
            drop(path)
        waited, began = queued(), time.perf_counter()
        work(path)
        times.append(time.perf_counter() - began - (queued() - waited))
    return min(times)


def load(path: Path) -> dict[str, float]:
    """Return seconds of loading a file whole."""
    import torch

    return {kind: fastest(lambda each: torch.load(each, weights_only=True), path, kind) for kind in KINDS}


def build(path: Path) -> dict[str, float]:
    """Return what a reference of a dump costs."""
    from specscope_collectors.references.building import Building, Order
    from specscope_collectors.references.document import packed

    began, busy, waited = time.monotonic(), time.process_time(), queued()
    reference = Building(Order(root=path, name="bench", made_ms=1_790_000_000_000)).run()
    size = len(packed(reference))
    took = time.monotonic() - began
    status = Path("/proc/self/status").read_text("ascii").splitlines()
    [peak] = [int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM")]
    return {
        "seconds": took, "queued": queued() - waited, "busy": time.process_time() - busy, "megabytes": peak,
        "read": from_disk(), "requests": reference.requests, "rows": reference.rows, "size": size,
    }  # fmt: skip


def read(plan: Path) -> dict[str, float]:
    """Return what the disk takes for rows; the plan names files and (offset, length) within them."""
    files = json.loads(plan.read_text(encoding="utf-8"))
    began, waited = time.monotonic(), queued()
    for path, places in files:
        number = os.open(path, os.O_RDONLY)
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_RANDOM)
        for start, length in places:
            os.posix_fadvise(number, start, length, os.POSIX_FADV_WILLNEED)
        for start, length in places:
            os.pread(number, length, start)
        os.close(number)
    return {"seconds": time.monotonic() - began, "queued": queued() - waited, "read": from_disk()}


if __name__ == "__main__":
    made = {"load": load, "build": build, "read": read}[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write(json.dumps(made))
