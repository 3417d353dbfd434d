"""The profiler captures of the demo engine: Kineto traces of eight ranks, simulated like its times.

Verify takes what the cycle model says. Of that, computing is the same before and after the network is tuned;
what the tuning saves is all-reduce. One rank is late to each collective, and the others wait for it.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from specscope_server.demo.model import Cycle, CycleModel

RANKS, LAYERS, CYCLES = 8, 10, 30
STRAGGLER, LATE_US = 5, 250.0
COMPUTING = 0.86
"""Share of verify, on the tuned network, that is not all-reduce."""
GEMM, ATTENTION, NORM = 0.62, 0.27, 0.08
"""Shares of computing; the rest are gaps between kernels."""
KERNELS = {
    "gemm": "fused_moe_kernel",
    "attention": "void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::bfloat16_t>>",
    "norm": "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>",
    "all_reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "sampling": "void at::native::reduce_kernel<512, 1, ArgMaxOps>",
    "draft": "nvjet_tst_128x64_64x9_2x1_v_bz_TNT",
}
PROCESS, THREAD, STREAM = 4242, 4242, 7
JITTER = 0.02


@dataclass(slots=True)
class _Rank:
    """Events of one rank; times in µs since the capture began."""

    number: int
    events: list[dict[str, Any]] = field(default_factory=list)
    now: float = 1_000.0
    calls: int = 0

    def add(self, kind: str, name: str, start: float, length: float, **args: int) -> None:
        is_gpu = kind == "kernel"
        self.events.append({
            "ph": "X", "cat": kind, "name": name, "pid": 0 if is_gpu else PROCESS,
            "tid": STREAM if is_gpu else THREAD, "ts": round(start, 3), "dur": round(length, 3), "args": args,
        })  # fmt: skip

    def begin(self, phase: str, name: str | None) -> None:
        """Launch a phase as one CUDA graph, from within its range."""
        self.calls += 1
        if name:
            self.add("user_annotation", name, self.now - 300.0, 250.0)
        self.add("cuda_runtime", "cudaGraphLaunch", self.now - 200.0, 8.0, correlation=self.calls)

    def kernel(self, name: str, length: float) -> None:
        args = {"correlation": self.calls, "stream": STREAM, "device": 0}
        self.add("kernel", KERNELS[name], self.now, length, **args)
        self.now += length


def capture(model: CycleModel, began_ms: int, seed: str) -> bytes:
    """Return a tar archive with one trace for each rank, as SGLang's profiler names them."""
    rng = random.Random(seed)  # noqa: S311
    ranks = [_Rank(number) for number in range(RANKS)]
    tuned = CycleModel(model.num_steps, model.alphas).mean_cycle(1)
    for _ in range(CYCLES):
        scale = math.exp(rng.gauss(0.0, JITTER))
        _cycle(ranks, model.mean_cycle(1), 1_000 * COMPUTING * tuned.verify / LAYERS * scale, scale)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for rank in ranks:
            name = f"{began_ms / 1000:.2f}-TP-{rank.number}.trace.json.gz"
            content = gzip.compress(b"".join(_document(rank, began_ms)), 1)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def _cycle(ranks: list[_Rank], mean: Cycle, layer_us: float, scale: float) -> None:
    for rank in ranks:
        rank.begin("draft", "draft")
        rank.kernel("draft", 1_000 * mean.draft * scale)
        rank.begin("verify", "step[VERIFY bs=1]")
    transfer = 1_000 * mean.verify * scale / LAYERS - layer_us - LATE_US
    for _ in range(LAYERS):
        _layer(ranks, layer_us, transfer)
    for rank in ranks:
        rank.begin("sampling", None)
        rank.kernel("sampling", 350 * mean.rest * scale)
        rank.begin("draft_extend", "draft_extend")
        rank.kernel("draft", 1_000 * mean.extend * scale)
        rank.now += 650 * mean.rest * scale


def _layer(ranks: list[_Rank], layer_us: float, transfer_us: float) -> None:
    for rank in ranks:
        rank.kernel("gemm", GEMM * layer_us + (LATE_US if rank.number == STRAGGLER else 0.0))
        rank.kernel("attention", ATTENTION * layer_us)
        rank.now += (1 - GEMM - ATTENTION - NORM) * layer_us
        rank.kernel("norm", NORM * layer_us)
    end = max(rank.now for rank in ranks) + transfer_us
    for rank in ranks:
        rank.kernel("all_reduce", end - rank.now)


def _document(rank: _Rank, began_ms: int) -> Iterator[bytes]:
    head = {
        "schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": RANKS},
        "baseTimeNanoseconds": began_ms * 1_000_000,
    }  # fmt: skip
    yield json.dumps(head).encode()[:-1]
    yield b', "traceEvents": '
    yield json.dumps(rank.events).encode()
    yield b', "traceName": "demo"}'
