"""What the endpoints about traces answer."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TraceItem(BaseModel):
    """One capture in a list."""

    id: int
    server: str
    launch_id: int | None
    name: str
    note: str
    time: str = Field(description="When the capture began")
    basis: str = Field(
        description="How phases were found: `launches` (kernels by the call that launched them), "
        "`gpu_ranges`, `structure`, `cpu_ranges` (no GPU activity) or `none`; of several ranks, the weakest"
    )
    ranks: int
    cycles: int
    is_demo: bool = Field(description="Of a demo engine: simulated, not measured")


class TraceList(BaseModel):
    """Captures, newest first."""

    traces: list[TraceItem]
    next_cursor: str | None


class ClassTime(BaseModel):
    """Time of one class of kernel in one phase."""

    kernel_class: str = Field(
        description="`all_reduce`, `collective`, `fused_all_reduce`, `attention`, `gemm`, `norm`, "
        "`sampling`, `copy`, `other`, or `gap` (no kernel runs)"
    )
    mean_ms: float = Field(
        description="Of an occurrence. The classes of a phase add up to its mean wall time"
    )
    share: float = Field(description="Of the phase's wall time")
    busy_mean_ms: float | None = Field(
        description="The same where overlapping kernels count each in full; null for gaps"
    )


class PhaseTime(BaseModel):
    """One phase on one rank."""

    phase: str
    count: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    cpu_median_ms: float | None = Field(description="The CPU's range: launch time under overlap scheduling")
    exposed_communication_ms: float | None = Field(description="Mean; communication that no kernel hides")
    overlapped_communication_ms: float | None = Field(description="Mean; communication beneath computing")
    batch_sizes: dict[int, int] = Field(description="Batch size → occurrences, where the trace says it")
    classes: list[ClassTime]


class KernelItem(BaseModel):
    """All kernels of one name."""

    name: str
    kernel_class: str
    count: int
    total_ms: float


class RankTime(BaseModel):
    """What one rank's part of a capture says."""

    rank: str
    labels: dict[str, str]
    basis: str
    confidence: float
    cycles: int
    ranges: dict[str, int] = Field(description="Named ranges found in the trace")
    span_ms: float
    gpu_busy_ms: float
    gpu_idle_share: float | None = Field(description="Of the span; null without GPU activity")
    unattributed_ms: float = Field(description="Kernel time outside all phases")
    kernels: int
    clock_offset_ms: float | None
    refused: dict[str, int]
    phases: list[PhaseTime]
    top: list[KernelItem]
    other: list[KernelItem] = Field(description="Kernels whose names are not known, the longest first")


class CollectiveTime(BaseModel):
    """Collectives of one phase over the ranks of a group."""

    phase: str
    group: dict[str, str]
    aligned: int
    not_aligned: int
    transfer_ms: float
    waiting_ms: dict[str, float]
    last: dict[str, int]
    straggler: str | None = Field(
        description="Rank that was the last in over half of the collectives in which any had to wait"
    )


class FileItem(BaseModel):
    """One file of a capture."""

    name: str
    bytes: int
    unpacked_bytes: int
    events: int
    trouble: str
    sha256: str
    download: str | None = Field(description="Path of the original, where it is kept")


class TraceDetail(TraceItem):
    """One capture."""

    notes: list[str]
    files: list[FileItem]
    rank_times: list[RankTime]
    collectives: list[CollectiveTime]


class TraceReceipt(BaseModel):
    """What became of an upload."""

    id: int
    is_new: bool
    trace: TraceDetail


class ChangeItem(BaseModel):
    """One class of kernel in one phase, before and after; means over ranks, ms of an occurrence."""

    phase: str
    kernel_class: str = Field(description="`all` = the whole phase")
    a_ms: float
    b_ms: float
    change_ms: float
    low_ms: float | None = Field(description="95 % interval; null below 6 occurrences on a side")
    high_ms: float | None
    change: float | None = Field(description="Relative to a; null when a is 0")
    a_count: int
    b_count: int
    is_shown: bool = Field(description="The interval leaves 0 out")


class TraceComparison(BaseModel):
    """Capture b against capture a."""

    a: TraceItem
    b: TraceItem
    verdict: str
    notes: list[str]
    changes: list[ChangeItem]


class CaptureOrder(BaseModel):
    """What to capture."""

    server: str = Field(description="Name of a watched server")
    steps: int = Field(30, ge=1, le=500, description="Forward steps (cycles) to record")
    by_stage: bool = Field(False, description="Record prefill and decode apart")


class CaptureState(BaseModel):
    """The newest capture that was started here."""

    server: str
    steps: int
    state: str = Field(description="`running`, `waiting` (for its files), `done` or `failed`")
    words: str
    trace_ids: list[int]


class CaptureStates(BaseModel):
    """Captures started here, newest first."""

    captures: list[CaptureState]
