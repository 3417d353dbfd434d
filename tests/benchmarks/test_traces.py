"""Reading a trace must cost little: a GPU host has other work, and a capture of eight ranks is gigabytes.

* Against HolisticTraceAnalysis 0.5 (parse the trace, breakdown of kernels and of time, overlap of
  communication) on the same file in one run, each in a process of its own: CPU seconds and peak memory. It
  brings pandas, so it is looked for in the environment whose Python ``SPECSCOPE_HTA_PYTHON`` names, else in
  this one.
* 1 GB of JSON stays below 400 MB of memory.

Measured on a shared machine with two cores: 100 MB of JSON in 0.87 s and 74 MB of memory, against 9.7 s and
619 MB (11.2 times as fast, 1/8.4 of the memory); 1 GB with 1.3 million kernels in 7.8 s and 268 MB.

Events look like Kineto's: operators with shapes, kernels with grid, block and occupancy, launches, ranges.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

KERNELS, OPERATORS = 300, 220
LEAST_SPEED, LEAST_MEMORY = 5.0, 5.0
MAX_RESIDENT_BYTES = 400_000_000
GIGABYTE = 1_000_000_000
NAMES = (
    "nvjet_tst_128x64_64x9_2x1_v_bz_TNT", "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "fused_moe_kernel",
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::bfloat16_t>>",
)  # fmt: skip
OURS = """
import json, resource, sys, time
from specscope_collectors.traces.bounds import Bounds
from specscope_collectors.traces.reading import read_file
from specscope_collectors.traces.summary import summarise
began = time.process_time()
with open(sys.argv[1], "rb") as stream:
    found = read_file(stream, "1-TP-0.trace.json.gz", Bounds())
record = summarise([found], "x", 0)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": time.process_time() - began, "bytes": usage.ru_maxrss * 1024,
                  "cycles": record.ranks[0].cycles, "kernels": record.ranks[0].kernels,
                  "unpacked": found.file.unpacked_bytes}))
"""
THEIRS = """
import json, logging, resource, sys, time
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
began = time.process_time()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]})
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
spent = time.process_time() - began
children = resource.getrusage(resource.RUSAGE_CHILDREN)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": spent + children.ru_utime + children.ru_stime, "bytes": usage.ru_maxrss * 1024}))
"""


def event(kind: str, name: str, ts: float, dur: float, pid: int, tid: int, args: str) -> str:
    """Return an event as Kineto writes it."""
    return (
        f'  {{\n    "ph": "X", "cat": "{kind}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
        f'    "ts": {ts:.3f}, "dur": {dur:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'
    )


def cycle(number: int) -> Iterator[str]:
    """Yield the events of one cycle: two graph launches, three ranges, operators around them."""
    start, correlation = 1_000.0 + 30_000.0 * number, 1_000 * number + 1
    for place, (name, length) in enumerate(
        (("draft", 300.0), ("step[VERIFY bs=8]", 900.0), ("draft_extend", 200.0))
    ):
        at = start + 1_500 * place
        yield event(
            "user_annotation", name, at, length, 6706, 6706, f'"External id": {number}, "Ev Idx": {place}'
        )
        yield event("cuda_runtime", "cudaGraphLaunch", at + 50, 9.5, 6706, 6706,
                    f'"External id": {number}, "correlation": {correlation + place}')  # fmt: skip
    for place in range(OPERATORS):
        yield event("cpu_op", "aten::copy_", start + 20 * place, 8.25, 6706, 6706,
                    f'"External id": {place}, "Record function id": 0, "Concrete Inputs": ["", "", "False"], '
                    f'"Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"], '
                    f'"Input Strides": [[4096, 1], [4096, 1], []], "Input Dims": [[8, 4096], [8, 4096], []], '
                    f'"Ev Idx": {place}')  # fmt: skip
    for place in range(KERNELS):
        graph = 0 if place < 30 else 1 if place < 280 else 2
        yield event("kernel", NAMES[place % len(NAMES)], start + 2_000 + 60 * place, 41.5, 0, 7,
                    f'"External id": {number}, "queued": 0, "device": 0, "context": 1, "stream": 7, '
                    f'"correlation": {correlation + graph}, "registers per thread": 168, '
                    '"shared memory": 213248, '
                    f'"blocks per SM": 1.0, "warps per SM": 12.0, "grid": [132, 1, 1], "block": [384, 1, 1], '
                    f'"est. achieved occupancy %": 18, "graph node id": {place}')  # fmt: skip


def write_trace(path: Path, at_least_bytes: int) -> int:
    """Write a trace of so much JSON and return its number of cycles."""
    written, number = 0, 0
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(
            b'{"schemaVersion": 1, "deviceProperties": [], "distributedInfo": {"rank": 0, "world_size": 8},\n'
        )
        out.write(b'"baseTimeNanoseconds": 1772366400000000000, "traceEvents": [\n')
        while written < at_least_bytes:
            text = ",\n".join(cycle(number)).encode()
            written += out.write(text if number == 0 else b",\n" + text)
            number += 1
        out.write(b'\n], "traceName": "x"}\n')
    return number


def measure(python: str, script: str, path: Path) -> dict[str, float]:
    """Run a script on a trace in a process of its own and return what it measured of itself."""
    done = subprocess.run([python, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def hta_python() -> str:
    """Return a Python that has HolisticTraceAnalysis."""
    named = os.environ.get("SPECSCOPE_HTA_PYTHON")
    if named is None and importlib.util.find_spec("hta") is None:
        pytest.skip("HolisticTraceAnalysis is not installed: name a Python that has it, SPECSCOPE_HTA_PYTHON")
    return named or sys.executable


def test_it_is_cheaper_than_holistic_trace_analysis(tmp_path: Path) -> None:
    python, path = hta_python(), tmp_path / "1-TP-0.trace.json.gz"
    cycles = write_trace(path, 100_000_000)
    ours, theirs = measure(sys.executable, OURS, path), measure(python, THEIRS, path)
    assert ours["cycles"] == cycles
    speed, memory = theirs["seconds"] / ours["seconds"], theirs["bytes"] / ours["bytes"]
    assert speed >= LEAST_SPEED, (ours, theirs)
    assert memory >= LEAST_MEMORY, (ours, theirs)


def test_a_gigabyte_stays_below_400_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "1-TP-0.trace.json.gz"
    cycles = write_trace(path, GIGABYTE)
    found = measure(sys.executable, OURS, path)
    assert found["unpacked"] >= GIGABYTE
    assert (found["cycles"], found["kernels"]) == (cycles, cycles * KERNELS)
    assert found["bytes"] < MAX_RESIDENT_BYTES
