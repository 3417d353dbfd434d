"""A summary for people, and as JSON for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from specscope_collectors.observations import TracePhase, TraceRank, TraceSummary
from specscope_collectors.traces.accounts import unpacked
from specscope_collectors.traces.collectives import name_of

MAX_SHOWN_RANKS, MAX_SHOWN_KERNELS, MAX_SHOWN_NAME = 8, 8, 70


def as_document(summary: TraceSummary) -> dict[str, Any]:
    """Return what a summary says, statistics instead of packed arrays."""
    return {
        "key": summary.key,
        "time_ms": summary.time_ms,
        "name": summary.name,
        "note": summary.note,
        "notes": list(summary.notes),
        "files": [_plain(file) for file in summary.files],
        "ranks": [_rank(rank) for rank in summary.ranks],
        "collectives": [_plain(each) for each in summary.collectives],
    }


def _plain(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _rank(rank: TraceRank) -> dict[str, Any]:
    return {
        **{name: value for name, value in _plain(rank).items() if name not in ("phases", "top", "other")},
        "rank": name_of(rank.labels),
        "phases": [_phase(phase) for phase in rank.phases],
        "top": [_plain(each) for each in rank.top],
        "other": [_plain(each) for each in rank.other],
    }


def _phase(phase: TracePhase) -> dict[str, Any]:
    wall = unpacked(phase.wall_ms)
    median, p95 = np.quantile(wall, (0.5, 0.95)) if len(wall) else (0.0, 0.0)
    classes = {name: float(unpacked(array).mean()) for name, array in phase.class_ms.items()}
    if phase.gap_ms:
        classes["gap"] = float(unpacked(phase.gap_ms).mean())
    return {
        "phase": phase.phase,
        "count": phase.count,
        "mean_ms": float(wall.mean()) if len(wall) else 0.0,
        "median_ms": float(median),
        "p95_ms": float(p95),
        "class_mean_ms": dict(sorted(classes.items(), key=lambda item: -item[1])),
        "busy_mean_ms": {name: float(unpacked(array).mean()) for name, array in phase.busy_ms.items()},
        "batch_sizes": phase.batch_sizes,
    }


def as_lines(summary: TraceSummary) -> Iterator[str]:
    """Yield a summary in words and columns. Names are the trace's text, without control characters."""
    yield f"trace     {_safe(summary.name)}, {_count(summary.files, 'file')}, {_count(summary.ranks, 'rank')}"
    for note in summary.notes:
        yield f"note      {_safe(note, 400)}"
    for rank in summary.ranks[:MAX_SHOWN_RANKS]:
        yield from _rank_lines(rank)
    if len(summary.ranks) > MAX_SHOWN_RANKS:
        yield f"          {len(summary.ranks) - MAX_SHOWN_RANKS} more ranks: --format json shows them"
    for each in summary.collectives:
        worst = max(each.last, key=lambda name: each.last[name], default="")
        waiting = max(each.waiting_ms.values(), default=0.0)
        yield (
            f"ranks     {each.phase}: {each.aligned} collectives, transfer {each.transfer_ms:.2f} ms, "
            f"waiting up to {waiting:.2f} ms; last most often: {worst} ({each.last.get(worst, 0)})"
        )


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def _rank_lines(rank: TraceRank) -> Iterator[str]:
    ranges = ", ".join(f"{count} {name}" for name, count in rank.ranges.items())
    named = f" ({ranges})" if ranges else ""
    yield f"rank      {name_of(rank.labels)}: {rank.cycles} cycles, phases from {rank.basis}{named}"
    for phase in map(_phase, rank.phases):
        parts = [f"{name} {value:.3f}" for name, value in phase["class_mean_ms"].items() if value >= 0.0005]
        yield (
            f"  {phase['phase']:<21}{phase['count']:>5} × {phase['mean_ms']:>9.3f} ms  "
            f"(median {phase['median_ms']:.3f}, p95 {phase['p95_ms']:.3f})  {'  '.join(parts)}".rstrip()
        )
    for kernel in rank.top[:MAX_SHOWN_KERNELS]:
        name = _safe(kernel.name, MAX_SHOWN_NAME)
        yield f"  kernel {kernel.total_ms:>11.3f} ms {kernel.count:>7} × [{kernel.kernel_class}] {name}"


def _safe(text: str, limit: int = 120) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
