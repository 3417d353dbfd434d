"""Charts of captures as plain plotly dicts."""

from __future__ import annotations

from typing import Any

from specscope_server.kit.figures import Figure, Words, describe, floats, label, time_layout
from specscope_server.kit.figures_theme import Theme
from specscope_server.traces.comparison import WHOLE
from specscope_server.traces.schemas import ChangeItem, PhaseTime, RankTime, TraceComparison, TraceDetail

PHASES = Words(
    name="trace-phases",
    title="Trace: phases by class of kernel",
    question="What does each phase spend its time on, rank by rank?",
    definition="Mean of an occurrence. Where kernels overlap, the instant belongs to the one that computes: "
    "communication is drawn only where nothing hides it. Gaps: no kernel runs.",
    unit="ms",
)
CHANGES = Words(
    name="trace-changes",
    title="Traces compared: change by class of kernel",
    question="What became faster or slower, and is it more than scatter?",
    definition="Mean of an occurrence, later minus earlier, over ranks. Bars are 95 % intervals; hollow: the "
    "interval holds 0.",
    unit="ms",
)
SHOWN_PHASES = (
    "draft", "verify", "sampling", "draft_extend", "after_verify", "prefill", "prefill_draft_extend",
    "decode",
)  # fmt: skip
CLASS_NAMES = {
    "gemm": "matrix products, experts", "attention": "attention", "norm": "norm, elementwise",
    "sampling": "sampling, tree", "other": "other", "fused_all_reduce": "all-reduce fused with norm",
    "all_reduce": "all-reduce", "collective": "other collectives", "copy": "copies", "gap": "gaps",
    "whole": "not split",
}  # fmt: skip
_PATTERNS = {"fused_all_reduce": "x", "all_reduce": "/", "collective": "\\", "gap": ".", "whole": "-"}
MAX_RANKS, MAX_CHANGES = 16, 30


def color_of(name: str, theme: Theme) -> str:
    """Return the colour of a class of kernel."""
    return {
        "gemm": theme.draft, "attention": theme.reference, "norm": theme.draft_extend,
        "sampling": theme.sampling, "other": theme.host, "fused_all_reduce": theme.rejected,
        "all_reduce": theme.verify, "collective": theme.verify, "copy": theme.ink_soft, "gap": theme.idle,
    }.get(name, theme.host)  # fmt: skip


def phase_name(phase: str) -> str:
    """Return how a phase is called on screen."""
    names = {"draft_extend": "draft-extend", "prefill_draft_extend": "draft-extend after prefill"}
    return names.get(phase, phase.replace("_", " "))


def phases_figure(data: TraceDetail | None, theme: Theme) -> Figure:
    """Stacked bars: one for each phase and rank, a layer for each class of kernel."""
    ranks = data.rank_times[:MAX_RANKS] if data else []
    bars = [
        (phase, rank, found)
        for phase in SHOWN_PHASES
        for rank in ranks
        if (found := _phase_of(rank, phase)) is not None
    ]
    layout = time_layout(theme, 0, 1)
    plain = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor")}
    layout["xaxis"] = {**plain, "type": "multicategory" if len(ranks) > 1 else "category", "fixedrange": True}
    layout["yaxis"].update(title={"text": "ms", "standoff": 8}, rangemode="tozero", hoverformat=".3f")
    layout.update(barmode="stack", bargap=0.12, dragmode=False, height=340, hovermode="closest")
    traces = [trace for name in CLASS_NAMES if (trace := _layer(name, bars, theme, len(ranks) > 1))]
    words = PHASES
    if data and len(data.rank_times) > MAX_RANKS:
        layout["meta"] = {"hidden_ranks": len(data.rank_times) - MAX_RANKS}
    figure: Figure = {"data": traces, "layout": layout}
    describe(figure, words, False)
    figure["layout"]["meta"]["x"] = "phase"
    return figure


_Bar = tuple[str, RankTime, PhaseTime]


def _phase_of(rank: RankTime, name: str) -> PhaseTime | None:
    return next((phase for phase in rank.phases if phase.phase == name), None)


def _layer(name: str, bars: list[_Bar], theme: Theme, by_rank: bool) -> dict[str, Any] | None:
    values = [_value(phase, name) for _, _, phase in bars]
    if not any(values):
        return None
    phases = [phase_name(phase) for phase, _, _ in bars]
    pattern = {"shape": _PATTERNS[name], "fillmode": "overlay", "size": 6} if name in _PATTERNS else {}
    return {
        "type": "bar", "name": CLASS_NAMES[name],
        "x": [phases, [label(rank.rank, 20) for _, rank, _ in bars]] if by_rank else phases,
        "y": floats(values),
        "marker": {
            "color": color_of(name, theme), "line": {"width": 0.5, "color": theme.paper}, "pattern": pattern,
        },
        "text": [_text(phase, name) for *_, phase in bars],
        "textposition": "none",
        "hovertemplate": "%{x}: %{y:.3f} ms (%{text})<extra>" + CLASS_NAMES[name] + "</extra>",
    }  # fmt: skip


def _value(phase: PhaseTime, name: str) -> float:
    if name == "whole":
        return 0.0 if phase.classes else phase.mean_ms
    return next((each.mean_ms for each in phase.classes if each.kernel_class == name), 0.0)


def _text(phase: PhaseTime, name: str) -> str:
    return f"{_share(phase, name):.0%} of {phase.mean_ms:.2f} ms, n={phase.count}"


def _share(phase: PhaseTime, name: str) -> float:
    return _value(phase, name) / phase.mean_ms if phase.mean_ms else 0.0


def changes_figure(data: TraceComparison | None, theme: Theme) -> Figure:
    """A dot with its interval for each phase and class, the largest change on top."""
    items = sorted(data.changes if data else [], key=lambda item: -abs(item.change_ms))[:MAX_CHANGES]
    layout = time_layout(theme, 0, 1)
    plain = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor")}
    layout["xaxis"] = {
        **plain, "type": "linear", "zeroline": True, "zerolinecolor": theme.ink_soft, "fixedrange": True,
        "title": {"text": "change, ms", "standoff": 4},
    }  # fmt: skip
    layout["yaxis"].update(type="category", autorange="reversed", nticks=0, dtick=1, automargin=True)
    layout.update(dragmode=False, hovermode="closest", height=max(220, 100 + 20 * len(items)))
    traces = [_dots(items, whole, theme) for whole in (True, False)]
    figure: Figure = {"data": [trace for trace in traces if trace["y"]], "layout": layout}
    describe(figure, CHANGES, False)
    figure["layout"]["meta"]["x"] = "change"
    return figure


def _dots(items: list[ChangeItem], whole: bool, theme: Theme) -> dict[str, Any]:
    own = [item for item in items if (item.kernel_class == WHOLE) is whole]
    return {
        "type": "scatter", "mode": "markers", "name": "whole phase" if whole else "class of kernel",
        "x": floats(item.change_ms for item in own),
        "y": [_row(item) for item in own],
        "error_x": {
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": theme.ink_soft,
            "array": floats(_arm(item.high_ms, item.change_ms) for item in own),
            "arrayminus": floats(_arm(item.change_ms, item.low_ms) for item in own),
        },
        "marker": {
            "color": theme.verify if whole else theme.draft, "size": 9,
            "symbol": [_symbol(item, whole) for item in own],
        },
        "text": [f"{item.a_ms:.3f} → {item.b_ms:.3f} ms" for item in own],
        "hovertemplate": "%{y}: %{x:+.3f} ms (%{text})<extra></extra>",
    }  # fmt: skip


def _row(item: ChangeItem) -> str:
    if item.kernel_class == WHOLE:
        return f"{phase_name(item.phase)}: all"
    return f"{phase_name(item.phase)}: {CLASS_NAMES.get(item.kernel_class, label(item.kernel_class, 30))}"


def _symbol(item: ChangeItem, whole: bool) -> str:
    return ("diamond" if whole else "circle") + ("" if item.is_shown else "-open")


def _arm(upper: float | None, lower: float | None) -> float | None:
    return None if upper is None or lower is None else max(0.0, upper - lower)
