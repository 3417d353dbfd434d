"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

ITEM: dict[str, Any] = {
    "id": 3,
    "server": "gpu1:30000",
    "launch_id": 7,
    "name": "before NCCL tuning",
    "note": "",
    "time": "2026-03-01T12:00:00.000Z",
    "basis": "launches",
    "ranks": 1,
    "cycles": 30,
    "is_demo": False,
}
LIST: dict[str, Any] = {"traces": [ITEM], "next_cursor": None}
_KERNEL = {
    "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "kernel_class": "all_reduce",
    "count": 3660,
    "total_ms": 158.4,
}
_PHASE = {
    "phase": "verify",
    "count": 30,
    "mean_ms": 21.4,
    "median_ms": 21.3,
    "p95_ms": 22.0,
    "cpu_median_ms": 1.2,
    "exposed_communication_ms": 5.1,
    "overlapped_communication_ms": 0.2,
    "batch_sizes": {"8": 30},
    "classes": [
        {"kernel_class": "gemm", "mean_ms": 12.1, "share": 0.57, "busy_mean_ms": 12.1},
        {"kernel_class": "all_reduce", "mean_ms": 5.1, "share": 0.24, "busy_mean_ms": 5.3},
        {"kernel_class": "gap", "mean_ms": 4.2, "share": 0.19, "busy_mean_ms": None},
    ],
}
DETAIL: dict[str, Any] = {
    **ITEM,
    "notes": [],
    "files": [
        {
            "name": "1772366400.12-TP-0.trace.json.gz",
            "bytes": 8123456,
            "unpacked_bytes": 131072000,
            "events": 212345,
            "trouble": "",
            "sha256": "46d9edecae95a332b0e1b21e0ac717998fb1efdb71a73a328af1b3fb706d79c5",
            "download": "/api/v1/traces/3/files/0",
        }
    ],
    "rank_times": [
        {
            "rank": "TP0",
            "labels": {"tp_rank": "0"},
            "basis": "launches",
            "confidence": 1.0,
            "cycles": 30,
            "ranges": {"draft": 30, "verify": 30, "draft_extend": 30},
            "span_ms": 812.0,
            "gpu_busy_ms": 701.2,
            "gpu_idle_share": 0.136,
            "unattributed_ms": 1.2,
            "kernels": 91234,
            "clock_offset_ms": None,
            "refused": {},
            "phases": [_PHASE],
            "top": [_KERNEL],
            "other": [],
        }
    ],
    "collectives": [],
}
RECEIPT: dict[str, Any] = {"id": 3, "is_new": True, "trace": DETAIL}
COMPARISON: dict[str, Any] = {
    "a": ITEM,
    "b": {**ITEM, "id": 4, "name": "after NCCL tuning", "time": "2026-03-01T13:00:00.000Z"},
    "verdict": "The cycle takes 18.9 % less (27.10 → 21.98 ms); most of it is all-reduce in verify "
    "(−4.80 ms).",
    "notes": [
        "Intervals cover the scatter of cycles within each capture, not the change of load between them."
    ],
    "changes": [
        {
            "phase": "verify",
            "kernel_class": "all_reduce",
            "a_ms": 5.1,
            "b_ms": 0.3,
            "change_ms": -4.8,
            "low_ms": -4.9,
            "high_ms": -4.7,
            "change": -0.94,
            "a_count": 30,
            "b_count": 30,
            "is_shown": True,
        }
    ],
}
ORDER: dict[str, Any] = {"server": "gpu1:30000", "steps": 30}
CAPTURES: dict[str, Any] = {
    "captures": [
        {
            "server": "gpu1:30000",
            "steps": 30,
            "state": "done",
            "words": "imported 1 capture",
            "trace_ids": [3],
        }
    ]
}
