"""What the page about time shows of profiler captures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.pages.page import Page
from specscope_server.pages.wording import MISSING
from specscope_server.settings import Settings
from specscope_server.traces import figures, service
from specscope_server.traces.capturing import MAX_STEPS, STALL, UNDER_WAY
from specscope_server.traces.comparison import WHOLE
from specscope_server.traces.panels import PREFIX, chosen_ids
from specscope_server.traces.schemas import (
    CaptureState,
    ChangeItem,
    RankTime,
    TraceComparison,
    TraceDetail,
    TraceItem,
)

MAX_LISTED, MAX_CHANGES, MAX_KERNELS, MAX_CAPTURES = 20, 14, 12, 3
LEAST_MS = 0.001
BASES = {
    "launches": "ranges on the CPU, kernels by their launches",
    "gpu_ranges": "ranges on the GPU",
    "structure": "the order of CUDA graphs",
    "cpu_ranges": "ranges on the CPU only",
    "none": "nothing: no phases found",
}
"""How phases were found, in words."""
CAPTURE_STATES = {
    "running": ("idle", "recording"),
    "waiting": ("idle", "waiting for files"),
    "done": ("ok", "done"),
    "failed": ("bad", "failed"),
}
"""State of a capture → (kind of the shape, words)."""


def traces_of(session: Session, page: Page, folder: Path | None) -> dict[str, Any]:
    """Return the captures of the shown server: a list, the chosen one (or the newest), and a comparison."""
    content: dict[str, Any] = {
        "trace_list": [], "trace": None, "trace_problem": None, "trace_charts": [], "trace_comparison": None,
    }  # fmt: skip
    if page.server not in page.servers:
        return content
    by = page.query.get("by", "")
    listed = service.list_traces(session, page.server, MAX_LISTED, None)
    if not listed.traces:
        return content
    content |= {"trace_list": [_row(item, listed.traces, by) for item in listed.traces]}
    content |= {"more_traces": listed.next_cursor is not None}
    try:
        ids = chosen_ids(by)
        detail = service.get_trace(session, ids[-1] if ids else listed.traces[0].id, folder)
        compared = service.compare(session, *ids) if len(ids) == 2 else None
    except (NotFound, InvalidInput) as error:
        return content | {"trace_problem": error.detail}
    return content | _chosen(detail, compared)


def captures_shown(states: list[CaptureState], page: Page, settings: Settings) -> dict[str, Any]:
    """Return what became of captures of the shown server, and where their files go."""
    own = [state for state in states if state.server == page.server][:MAX_CAPTURES]
    return {
        "capture_stall": STALL,
        "capture_max": MAX_STEPS,
        "captures": [(*CAPTURE_STATES[state.state], state) for state in own],
        "capture_runs": any(state.state in UNDER_WAY for state in states),
        "has_capture_folder": settings.trace_capture_folder is not None,
    }


def _row(item: TraceItem, listed: list[TraceItem], by: str) -> dict[str, Any]:
    place = listed.index(item)
    before = listed[place + 1] if place + 1 < len(listed) else None
    shown = {f"{PREFIX}{item.id}"} | ({""} if place == 0 else set())
    return {
        "item": item,
        "basis": BASES.get(item.basis, item.basis),
        "by": f"{PREFIX}{item.id}",
        "compare": f"{PREFIX}{before.id},{item.id}" if before else "",
        "is_shown": by in shown or by.endswith(f",{item.id}"),
    }


def _chosen(detail: TraceDetail, compared: TraceComparison | None) -> dict[str, Any]:
    has_phases = any(rank.phases for rank in detail.rank_times)
    charts = [figures.PHASES] if has_phases else []
    if compared is not None and compared.changes:
        charts.append(figures.CHANGES)
    changes = compared.changes if compared is not None else []
    return {
        "trace": detail,
        "trace_ranks": [_rank(rank) for rank in detail.rank_times],
        "trace_kernels": detail.rank_times[0].top[:MAX_KERNELS],
        "trace_unknown": detail.rank_times[0].other[:MAX_KERNELS],
        "trace_comparison": compared,
        "trace_changes": [_change(item) for item in _shown(changes)],
        "trace_charts": charts,
        "class_names": figures.CLASS_NAMES,
    }


def _shown(changes: list[ChangeItem]) -> list[ChangeItem]:
    """Return whole phases, and of the classes those that changed most."""
    classes = sorted(
        (item for item in changes if item.kernel_class != WHOLE and abs(item.change_ms) >= LEAST_MS),
        key=lambda item: -abs(item.change_ms),
    )
    whole = [item for item in changes if item.kernel_class == WHOLE]
    return [*whole, *classes[: max(0, MAX_CHANGES - len(whole))]]


def _rank(rank: RankTime) -> dict[str, Any]:
    phases = {phase.phase: phase for phase in rank.phases}

    def median(name: str) -> str:
        return f"{phases[name].median_ms:.3f}" if name in phases else MISSING

    verify = phases.get("verify")
    bare = verify.exposed_communication_ms if verify else None
    hidden = verify.overlapped_communication_ms if verify else None
    return {
        "rank": rank.rank,
        "cycles": rank.cycles,
        **{name: median(name) for name in ("cycle", "draft", "verify", "sampling", "draft_extend")},
        "exposed": MISSING if bare is None else f"{bare:.3f}",
        "hidden": MISSING if hidden is None else f"{hidden:.3f}",
        "idle": MISSING if rank.gpu_idle_share is None else f"{rank.gpu_idle_share:.0%}".replace("%", " %"),
    }


def _change(item: ChangeItem) -> dict[str, Any]:
    whole = item.kernel_class == WHOLE
    has_bounds = item.low_ms is not None and item.high_ms is not None
    return {
        "phase": figures.phase_name(item.phase),
        "kernel_class": "all" if whole else figures.CLASS_NAMES.get(item.kernel_class, item.kernel_class),
        "a": f"{item.a_ms:.3f}",
        "b": f"{item.b_ms:.3f}",
        "change": _signed(item.change_ms, 3),
        "share": MISSING if item.change is None else f"{_signed(100 * item.change, 1)} %",
        "bounds": f"{_signed(item.low_ms, 3)} … {_signed(item.high_ms, 3)}" if has_bounds else MISSING,
        "is_shown": item.is_shown,
    }


def _signed(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    near_zero = abs(value) < 0.5 * 10**-digits
    return f"{0.0:.{digits}f}" if near_zero else f"{value:+.{digits}f}".replace("-", "−")
