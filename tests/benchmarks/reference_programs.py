"""Run by `test_references.py`, each in a process of its own: `reference_programs.py WHAT PATH` prints JSON.

``load``: torch.load of a file. ``sample``: norms of 64 rows × 3 slots of it. ``rows``: just read these rows.
All three in seconds, cold and cached. ``build``: a reference of a dump. ``read``: the rows of a plan alone.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROUNDS = 15
KINDS = ("cold", "cached")
HIDDEN_SIZE, SLOTS = 7_168, 3


class Clock:
    """Seconds that pass without those in which this thread could have run and others had the processors."""

    def __init__(self) -> None:
        self._statistics = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._began = time.perf_counter()
        self._queued = self.queued()

    def queued(self) -> float:
        """Return how long this thread has waited for a processor since it was made."""
        return int(os.pread(self._statistics, 100, 0).split()[1]) / 1e9

    def stop(self) -> tuple[float, float]:
        """Return (seconds that passed, seconds without the waiting)."""
        waited = self.queued() - self._queued
        passed = time.perf_counter() - self._began
        os.close(self._statistics)
        return passed, passed - waited


def from_disk() -> int:
    """Return how many bytes this process has read from the disk."""
    [found] = [line for line in Path("/proc/self/io").read_text("ascii").splitlines() if "read_bytes" in line]
    return int(found.split()[1])


def drop(path: Path) -> None:
    """Let the system forget what it has kept of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seconds_of(work: Callable[[Path], Any], path: Path) -> dict[str, list[float]]:
    """Return the seconds of some rounds, the least first; what a round returns is freed after it."""
    found = {}
    for kind in KINDS:
        times = []
        for _ in range(ROUNDS):
            if kind == "cold":
                drop(path)
            clock = Clock()
            result = work(path)
            times.append(clock.stop()[1])
            del result
        found[kind] = sorted(times)
    return found


def small(path: Path) -> Path:
    """Return a small file like this one, which is read first: what is imported late is then there."""
    return path.with_name(f"small_{path.name}")


def load(path: Path) -> dict[str, list[float]]:
    """Load a file whole, as users do."""
    import torch

    def whole(each: Path) -> Any:
        return torch.load(each, weights_only=True)

    whole(small(path))
    return seconds_of(whole, path)


def sample(path: Path) -> dict[str, list[float]]:
    """Open a file and compute the norms of its rows."""
    from specscope_collectors.references.ahead import ask_for_ends
    from specscope_collectors.references.choosing import choose_rows
    from specscope_collectors.references.reading import Dump, ln_norms_of_rows
    from specscope_collectors.references.shapes import Told

    dump = Dump(path.parent, Told(HIDDEN_SIZE, SLOTS))

    def norms(each: Path) -> Any:
        ask_for_ends(str(each))
        opened, found = dump.open(each.name)
        rows = choose_rows(len(found.token_ids), each.name, 0)
        return ln_norms_of_rows(opened, replace(found, last=None), rows)

    norms(small(path))
    return seconds_of(norms, path)


def build(path: Path) -> dict[str, float]:
    """Return what a reference of a dump costs."""
    from specscope_collectors.references.building import Building, Order
    from specscope_collectors.references.document import packed

    clock, busy = Clock(), time.process_time()
    reference = Building(Order(root=path, name="bench", made_ms=1_790_000_000_000)).run()
    size = len(packed(reference))
    passed, took = clock.stop()
    status = Path("/proc/self/status").read_text("ascii").splitlines()
    [peak] = [int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM")]
    return {
        "passed": passed, "took": took, "busy": time.process_time() - busy, "megabytes": peak,
        "read": from_disk(), "requests": reference.requests, "rows": reference.rows, "size": size,
    }  # fmt: skip


def read_rows(path: Path, places: list[tuple[int, int]]) -> None:
    """Read (offset, length) of a file: all are asked for before the first is waited for."""
    number = os.open(path, os.O_RDONLY)
    os.posix_fadvise(number, 0, 0, os.POSIX_FADV_RANDOM)
    for start, length in places:
        os.posix_fadvise(number, start, length, os.POSIX_FADV_WILLNEED)
    for start, length in places:
        os.pread(number, length, start)
    os.close(number)


def read(plan: Path) -> dict[str, float]:
    """Return what the disk takes for rows; the plan names files and (offset, length) within them."""
    files, clock = json.loads(plan.read_text(encoding="utf-8")), Clock()
    for path, places in files:
        read_rows(path, places)
    return {"took": clock.stop()[1], "read": from_disk()}


def rows(plan: Path) -> dict[str, list[float]]:
    """Read rows of one file alone."""
    [(path, places)] = json.loads(plan.read_text(encoding="utf-8"))

    def alone(each: Path) -> None:
        read_rows(each, places)

    return seconds_of(alone, Path(path))


if __name__ == "__main__":
    programs = {"load": load, "sample": sample, "build": build, "read": read, "rows": rows}
    sys.stdout.write(json.dumps(programs[sys.argv[1]](Path(sys.argv[2]))))
