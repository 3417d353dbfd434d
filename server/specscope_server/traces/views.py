"""Stored captures → what the endpoints answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specscope_collectors.observations import TraceCollectives, TracePhase, TraceRank, TraceSummary
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import Trace
from specscope_server.store.trace_writer import floats, occurrences
from specscope_server.traces.keeping import path_of
from specscope_server.traces.schemas import (
    ClassTime,
    CollectiveTime,
    FileItem,
    KernelItem,
    PhaseTime,
    RankTime,
    TraceDetail,
    TraceItem,
)
from specscope_server.traces.statistics import exposed, spread_of

COMMUNICATION = ("all_reduce", "collective")
_SHORT = {"dp_rank": "DP", "pp_rank": "PP", "tp_rank": "TP", "moe_ep_rank": "EP", "rank": "rank "}


def item_of(row: Trace, server: str, *, is_demo: bool) -> TraceItem:
    """Return one line of a list."""
    return TraceItem(
        id=row.id, server=server, launch_id=row.launch_id, name=row.name, note=row.note,
        time=to_iso(row.time_ms), basis=row.basis, ranks=row.ranks, cycles=row.cycles,
        is_demo=is_demo,
    )  # fmt: skip


def detail_of(
    row: Trace, server: str, record: TraceSummary, folder: Path | None, *, is_demo: bool
) -> TraceDetail:
    """Return a whole capture; ``folder`` is where originals are kept."""
    files = [
        FileItem(
            name=file.name, bytes=file.bytes, unpacked_bytes=file.unpacked_bytes, events=file.events,
            trouble=file.trouble, sha256=file.sha256,
            download=_address(row, index) if path_of(folder, row.key, file.name) else None,
        )
        for index, file in enumerate(record.files)
    ]  # fmt: skip
    return TraceDetail(
        **item_of(row, server, is_demo=is_demo).model_dump(),
        notes=list(record.notes),
        files=files,
        rank_times=[_rank(rank) for rank in record.ranks],
        collectives=[_collective(each) for each in record.collectives],
    )


def _address(row: Trace, index: int) -> str:
    return f"/api/v1/traces/{row.id}/files/{index}"


def rank_name(rank: TraceRank) -> str:
    """Return a short name such as ``DP1 TP3``."""
    parts = [f"{short}{rank.labels[name]}" for name, short in _SHORT.items() if name in rank.labels]
    return " ".join(parts) or "only rank"


def _rank(rank: TraceRank) -> RankTime:
    idle = 1 - rank.gpu_busy_ms / rank.span_ms if rank.kernels and rank.span_ms > 0 else None
    return RankTime(
        rank=rank_name(rank), labels=rank.labels, basis=rank.basis, confidence=rank.confidence,
        cycles=rank.cycles, ranges=rank.ranges, span_ms=rank.span_ms, gpu_busy_ms=rank.gpu_busy_ms,
        gpu_idle_share=idle, unattributed_ms=rank.unattributed_ms, kernels=rank.kernels,
        clock_offset_ms=rank.clock_offset_ms, refused=rank.refused,
        phases=[_phase(phase) for phase in rank.phases],
        top=[KernelItem(name=k.name, kernel_class=k.kernel_class, count=k.count, total_ms=k.total_ms)
             for k in rank.top],
        other=[KernelItem(name=k.name, kernel_class=k.kernel_class, count=k.count, total_ms=k.total_ms)
               for k in rank.other],
    )  # fmt: skip


def _phase(phase: TracePhase) -> PhaseTime:
    wall = spread_of(floats(phase.wall_ms) if phase.wall_ms else np.zeros(0))
    mean = wall.mean if wall else 0.0
    cpu = spread_of(floats(phase.cpu_ms)) if phase.cpu_ms else None
    busy = {name: floats(array) for name, array in phase.busy_ms.items()}
    classes = dict(occurrences(phase))
    bare, communication = exposed(classes, busy, COMMUNICATION)
    count = max(1, wall.n if wall else 0)
    return PhaseTime(
        phase=phase.phase, count=phase.count, mean_ms=mean, median_ms=wall.median if wall else 0.0,
        p95_ms=wall.p95 if wall else 0.0, cpu_median_ms=cpu.median if cpu else None,
        exposed_communication_ms=bare / count if classes else None,
        overlapped_communication_ms=max(0.0, communication - bare) / count if classes else None,
        batch_sizes=phase.batch_sizes,
        classes=[
            ClassTime(
                kernel_class=name, mean_ms=float(values.mean()),
                share=float(values.mean()) / mean if mean else 0.0,
                busy_mean_ms=float(busy[name].mean()) if name in busy else None,
            )
            for name, values in sorted(classes.items(), key=lambda item: -float(item[1].sum()))
        ],
    )  # fmt: skip


def _collective(each: TraceCollectives) -> CollectiveTime:
    worst = max(each.last, key=lambda rank: each.last[rank], default=None)
    late = sum(each.last.values())
    is_usual = worst is not None and each.last[worst] > late / 2 and late > each.aligned / 10
    return CollectiveTime(
        phase=each.phase, group=each.group, aligned=each.aligned, not_aligned=each.not_aligned,
        transfer_ms=each.transfer_ms, waiting_ms=each.waiting_ms, last=each.last,
        straggler=worst if is_usual else None,
    )  # fmt: skip


def class_rows(detail: TraceDetail) -> list[dict[str, object]]:
    """Return a row for each rank, phase and class of kernel."""
    return [
        {"rank": rank.rank, "phase": phase.phase, "count": phase.count, **each.model_dump()}
        for rank in detail.rank_times
        for phase in rank.phases
        for each in phase.classes
    ]
