"""Write synthetic profiler traces of several ranks whose answers are known.

Every rank runs the same cycles: draft (a CUDA graph), verify (a CUDA graph of ``layers`` layers), sampling,
draft-extend. A collective ends on all ranks at the same true time, ``transfer_us`` after the last one came;
each rank writes times of its own clock.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BASE_NS = 1_772_366_400_000_000_000
CPU_PID, CPU_TID = 6706, 6707
MAIN, SIDE = 7, 13
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "nvjet_tst_128x64_64x9_2x1_v_bz_TNT"
ATTENTION = "void flash::FlashAttnFwdSm90<cutlass::bfloat16_t>"
NORM = "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>"
SAMPLING = "void at::native::reduce_kernel<512, 1, ArgMaxOps>"
FUSED = "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport"
COPY = "Memcpy DtoH (Device -> Pinned)"


@dataclass(frozen=True)
class Plan:
    """What to simulate; times in µs."""

    ranks: int = 8
    cycles: int = 20
    layers: int = 6
    gemm_us: float = 40.0
    attention_us: float = 15.0
    norm_us: float = 4.0
    gap_us: float = 1.5
    transfer_us: float = 12.0
    hidden_us: float = 25.0
    """Length of an all-gather on another stream beneath each matrix product; 0 = none."""
    straggler: int | None = None
    delay_us: float = 30.0
    """How much later the straggler comes to each collective of verify."""
    offsets_us: Mapping[int, float] = field(default_factory=dict)
    """Rank → its clock minus the true one."""
    named: bool = True
    """With SGLang's ranges on the CPU."""
    mirrored: bool = False
    """With the same ranges on the GPU."""
    verify_name: str = "step[VERIFY bs=4]"
    also_own: bool = False
    """With the probe's ranges, too: around the engine's verify, and within its draft and draft-extend."""
    fused: bool = False
    eager_extend: bool = True
    """Draft-extend without a CUDA graph."""
    seed: int = 1


@dataclass
class Answer:
    """What the simulation did, by rank: phase → class → Σ ms; and over ranks."""

    exclusive_ms: list[dict[str, dict[str, float]]]
    wall_ms: list[dict[str, list[float]]]
    transfer_ms: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    waiting_ms: list[dict[str, float]] = field(default_factory=list)
    hidden_ms: float = 0.0


class _Rank:
    """The GPU of one rank, in true time."""

    def __init__(self, number: int, offset_us: float) -> None:
        self.number, self.offset = number, offset_us
        self.now = 1000.0
        self.events: list[dict[str, Any]] = []
        self.correlation = 100

    def event(
        self, kind: str, name: str, start: float, length: float, pid: Any, tid: Any, **args: Any
    ) -> None:
        self.events.append({
            "ph": "X", "cat": kind, "name": name, "pid": pid, "tid": tid,
            "ts": round(start + self.offset, 3), "dur": round(length, 3), "args": args,
        })  # fmt: skip

    def kernel(self, name: str, length: float, stream: int = MAIN, at: float | None = None) -> None:
        start = self.now if at is None else at
        kind = "gpu_memcpy" if name == COPY else "kernel"
        self.event(
            kind, name, start, length, 0, stream, correlation=self.correlation, device=0, stream=stream
        )
        if at is None:
            self.now += length

    def launch(self, name: str, at: float) -> None:
        self.correlation += 1
        self.event("cuda_runtime", name, at, 5.0, CPU_PID, CPU_TID, correlation=self.correlation)

    def named(self, name: str, start: float, end: float) -> None:
        self.event("user_annotation", name, start, end - start, CPU_PID, CPU_TID)


class Simulation:
    """Runs a plan; `ranks` then hold the events and `answer` what is to be found."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ranks = [_Rank(n, plan.offsets_us.get(n, 0.0)) for n in range(plan.ranks)]
        self.answer = Answer(
            [defaultdict(lambda: defaultdict(float)) for _ in self.ranks],
            [defaultdict(list) for _ in self.ranks],
            waiting_ms=[defaultdict(float) for _ in self.ranks],
        )
        self._random = random.Random(plan.seed)
        self._phase = ""
        for cycle in range(plan.cycles):
            self._cycle(cycle)

    def _cycle(self, cycle: int) -> None:
        cpu = 500.0 + 6000.0 * cycle
        scale = self._random.uniform(0.9, 1.1)
        self._run("draft", cpu, "draft", lambda: self._layers(1, scale, 0.0, hidden=False))
        delay = self.plan.delay_us if self.plan.straggler is not None else 0.0
        self._run("verify", cpu + 1000, self.plan.verify_name,
                  lambda: self._layers(self.plan.layers, scale, delay, hidden=True))  # fmt: skip
        self._run("sampling", cpu + 2000, None, self._sample)
        self._run(
            "draft_extend", cpu + 3000, "draft_extend", lambda: self._layers(1, scale, 0.0, hidden=False)
        )
        for rank in self.ranks:
            rank.now += 20.0

    def _run(self, phase: str, cpu: float, name: str | None, body: Any) -> None:
        self._phase = phase
        graph = phase in ("draft", "verify") or (phase == "draft_extend" and not self.plan.eager_extend)
        for rank in self.ranks:
            rank.now += 3.0
            rank.launch("cudaGraphLaunch" if graph else "cudaLaunchKernel", cpu + 100)
            if self.plan.named and name:
                rank.named(name, cpu, cpu + 800)
                if self.plan.also_own:
                    self._name_again(rank, phase, cpu)
        before = [rank.now for rank in self.ranks]
        body()
        for rank, start in zip(self.ranks, before, strict=True):
            self.answer.wall_ms[rank.number][phase].append((rank.now - start) / 1000)
            if self.plan.mirrored and name:
                rank.event("gpu_user_annotation", name, start, rank.now - start, 0, MAIN)

    def _name_again(self, rank: _Rank, phase: str, cpu: float) -> None:
        """Name a phase as the probe does; its whole verification lasts until after sampling was launched."""
        if phase == "verify":
            rank.named("specscope.target", cpu - 20, cpu + 820)
            rank.named("specscope.verify", cpu - 40, cpu + 1900)
        else:
            rank.named(f"specscope.{phase}", cpu + 20, cpu + 780)

    def _add(self, rank: _Rank, kind: str, microseconds: float) -> None:
        self.answer.exclusive_ms[rank.number][self._phase][kind] += microseconds / 1000

    def _compute(self, rank: _Rank, name: str, kind: str, length: float) -> None:
        rank.kernel(name, length)
        self._add(rank, kind, length)

    def _layers(self, count: int, scale: float, delay: float, *, hidden: bool) -> None:
        plan = self.plan
        for _ in range(count):
            for rank in self.ranks:
                late = delay if rank.number == plan.straggler else 0.0
                if hidden and plan.hidden_us:
                    rank.kernel(ALL_GATHER, plan.hidden_us, SIDE, at=rank.now + 1)
                    self.answer.hidden_ms += plan.hidden_us / 1000 / plan.ranks
                self._compute(rank, GEMM, "gemm", plan.gemm_us * scale + late)
                self._compute(rank, ATTENTION, "attention", plan.attention_us)
                rank.now += plan.gap_us
                self._add(rank, "gap", plan.gap_us)
            self._collective()
            for rank in self.ranks:
                self._compute(rank, NORM, "norm", plan.norm_us)

    def _collective(self) -> None:
        arrivals = [rank.now for rank in self.ranks]
        end = max(arrivals) + self.plan.transfer_us
        shortest = end - max(arrivals)
        self.answer.transfer_ms[self._phase] += shortest / 1000
        for rank, arrived in zip(self.ranks, arrivals, strict=True):
            rank.kernel(FUSED if self.plan.fused else ALL_REDUCE, end - arrived)
            self._add(rank, "fused_all_reduce" if self.plan.fused else "all_reduce", end - arrived)
            self.answer.waiting_ms[rank.number][self._phase] += (end - arrived - shortest) / 1000

    def _sample(self) -> None:
        for rank in self.ranks:
            self._compute(rank, SAMPLING, "sampling", 9.0)
            self._compute(rank, COPY, "copy", 2.0)


def document(rank: _Rank, world: int, noise: int = 0) -> dict[str, Any]:
    """Return the trace of a rank as JSON, with operators of the CPU among the events."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "ts": 0.0, "pid": CPU_PID, "tid": 0, "args": {"name": "python"}}
    ]
    operators = [
        {"ph": "X", "cat": "cpu_op", "name": 'aten::odd "}, {\\"ph\\": [', "pid": CPU_PID, "tid": CPU_TID,
         "ts": 10.0 * n, "dur": 4.5,
         "args": {"External id": n, "Input Dims": [[8, 16], [], [n]], "s": "}],{"}}
        for n in range(noise)
    ]  # fmt: skip
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": world},
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": [*events, *operators, *rank.events],
        "traceName": "x.json",
    }


def write(
    plan: Plan, folder: Path, noise: int = 0, *, indent: int | None = None
) -> tuple[list[Path], Answer]:
    """Write a file for each rank, named as SGLang names them; return them and the answer."""
    simulation = Simulation(plan)
    paths = []
    for rank in simulation.ranks:
        text = json.dumps(document(rank, plan.ranks, noise), indent=indent).encode()
        path = folder / f"1772366400.25-TP-{rank.number}.trace.json.gz"
        path.write_bytes(gzip.compress(text, 1))
        paths.append(path)
    return paths, simulation.answer


def write_merged(plan: Plan, folder: Path) -> tuple[Path, Answer]:
    """Write one file as SGLang's merger does: process ids carry the rank."""
    simulation = Simulation(plan)
    events: list[dict[str, Any]] = []
    for rank in simulation.ranks:
        label = f"[TP{rank.number:02d}]"
        events += [
            {**each, "pid": f"{label} {each['pid']}"} for each in document(rank, plan.ranks)["traceEvents"]
        ]
    path = folder / "merged-1772366400.25.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events, "schemaVersion": 1}).encode(), 1))
    return path, simulation.answer
