"""Charts of captures as plain plotly dicts."""

from __future__ import annotations

from typing import Any

from specscope_server.kit.figures import (
    Figure,
    Words,
    add_watermark,
    describe,
    floats,
    label,
    time_layout,
)
from specscope_server.kit.figures_theme import Theme
from specscope_server.traces.comparison import ORDER, WHOLE
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
    definition="Mean of an occurrence, later minus earlier, over ranks. Diamonds: whole phases with 95 % "
    "intervals; hollow: the interval holds 0.",
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
MAX_RANKS = 16


_Bar = tuple[str, RankTime, PhaseTime]


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
    by_phase = {
        phase: [(phase, rank, found) for rank in ranks if (found := _phase_of(rank, phase)) is not None]
        for phase in SHOWN_PHASES
    }
    bars = [bar for group in by_phase.values() for bar in group]
    layout = _layout(theme)
    layout["xaxis"] |= _axis([group for group in by_phase.values() if group])
    layout["yaxis"].update(title={"text": "ms", "standoff": 8}, rangemode="tozero", hoverformat=".3f")
    layout.update(barmode="stack", bargap=0.12)
    traces = [trace for name in CLASS_NAMES if (trace := _layer(name, bars, theme))]
    figure: Figure = {"data": traces, "layout": layout}
    _describe(figure, PHASES, theme, is_demo=data is not None and data.is_demo)
    figure["layout"]["meta"]["x"] = "phase"
    return figure


def _describe(figure: Figure, words: Words, theme: Theme, *, is_demo: bool) -> None:
    if is_demo:
        add_watermark(figure["layout"], theme)
    describe(figure, words, is_demo)


def _layout(theme: Theme) -> dict[str, Any]:
    layout = time_layout(theme, 0, 1)
    plain = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor")}
    layout["xaxis"] = {**plain, "type": "category", "fixedrange": True, "showgrid": False}
    layout.update(dragmode=False, hovermode="closest")
    return layout


def _axis(groups: list[list[_Bar]]) -> dict[str, Any]:
    """Name each phase once, under the middle of its ranks, and leave room between phases."""
    order: list[str] = []
    for number, group in enumerate(groups):
        order += [*map(_place, group), " " * (number + 1)]
    middles = [group[(len(group) - 1) // 2] for group in groups]
    return {
        "categoryorder": "array", "categoryarray": order, "tickmode": "array",
        "tickvals": [_place(bar) for bar in middles], "ticktext": [phase_name(bar[0]) for bar in middles],
    }  # fmt: skip


def _place(bar: _Bar) -> str:
    return f"{phase_name(bar[0])}, {label(bar[1].rank, 20)}"


def _phase_of(rank: RankTime, name: str) -> PhaseTime | None:
    return next((phase for phase in rank.phases if phase.phase == name), None)


def _layer(name: str, bars: list[_Bar], theme: Theme) -> dict[str, Any] | None:
    values = [_value(phase, name) for _, _, phase in bars]
    if not any(values):
        return None
    return {
        "type": "bar", "name": CLASS_NAMES[name], "x": [_place(bar) for bar in bars], "y": floats(values),
        "marker": _marker(name, theme), "text": [_text(phase, name) for *_, phase in bars],
        "textposition": "none",
        "hovertemplate": "%{x}: %{y:.3f} ms (%{text})<extra>" + CLASS_NAMES[name] + "</extra>",
    }  # fmt: skip


def _marker(name: str, theme: Theme) -> dict[str, Any]:
    pattern = {"shape": _PATTERNS[name], "fillmode": "overlay", "size": 6} if name in _PATTERNS else {}
    line = {"width": 0.5, "color": theme.paper}
    return {"color": color_of(name, theme), "line": line, "pattern": pattern}


def _text(phase: PhaseTime, name: str) -> str:
    return f"{_share(phase, name):.0%} of {phase.mean_ms:.2f} ms, n={phase.count}"


def _value(phase: PhaseTime, name: str) -> float:
    if name == "whole":
        return 0.0 if phase.classes else phase.mean_ms
    return next((each.mean_ms for each in phase.classes if each.kernel_class == name), 0.0)


def _share(phase: PhaseTime, name: str) -> float:
    return _value(phase, name) / phase.mean_ms if phase.mean_ms else 0.0


def changes_figure(data: TraceComparison | None, theme: Theme) -> Figure:
    """Bars of the change of each class, stacked by phase, and a diamond with its interval for the whole."""
    items = data.changes if data else []
    phases = [phase for phase in ORDER if any(item.phase == phase for item in items)]
    layout = _layout(theme)
    layout["xaxis"].update(categoryorder="array", categoryarray=[phase_name(phase) for phase in phases])
    layout["yaxis"].update(
        title={"text": "ms", "standoff": 8}, hoverformat="+.3f", zeroline=True, zerolinecolor=theme.ink_soft
    )
    layout.update(barmode="relative", bargap=0.3)
    least = 0.01 * max((abs(item.change_ms) for item in items), default=0.0)
    shown = [item for item in items if item.kernel_class != WHOLE and abs(item.change_ms) >= least]
    traces = [trace for name in CLASS_NAMES if (trace := _change_layer(name, shown, theme))]
    whole = [item for item in items if item.kernel_class == WHOLE]
    figure: Figure = {"data": [*traces, *([_whole(whole, theme)] if whole else [])], "layout": layout}
    _describe(figure, CHANGES, theme, is_demo=data is not None and data.b.is_demo)
    figure["layout"]["meta"]["x"] = "phase"
    return figure


def _change_layer(name: str, items: list[ChangeItem], theme: Theme) -> dict[str, Any] | None:
    own = [item for item in items if item.kernel_class == name]
    if not own:
        return None
    return {
        "type": "bar", "name": CLASS_NAMES[name], "x": [phase_name(item.phase) for item in own],
        "y": floats(item.change_ms for item in own), "marker": _marker(name, theme),
        "text": [f"{item.a_ms:.3f} → {item.b_ms:.3f} ms" for item in own], "textposition": "none",
        "hovertemplate": "%{x}: %{y:+.3f} ms (%{text})<extra>" + CLASS_NAMES[name] + "</extra>",
    }  # fmt: skip


def _whole(items: list[ChangeItem], theme: Theme) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": "whole phase",
        "x": [phase_name(item.phase) for item in items], "y": floats(item.change_ms for item in items),
        "error_y": {
            "type": "data", "symmetric": False, "thickness": 1.4, "width": 4, "color": theme.ink,
            "array": floats(_arm(item.high_ms, item.change_ms) for item in items),
            "arrayminus": floats(_arm(item.change_ms, item.low_ms) for item in items),
        },
        "marker": {
            "color": theme.ink, "size": 9,
            "symbol": ["diamond" if item.is_shown else "diamond-open" for item in items],
        },
        "text": [f"{item.a_ms:.3f} → {item.b_ms:.3f} ms" for item in items],
        "hovertemplate": "%{x}: %{y:+.3f} ms (%{text})<extra>whole phase</extra>",
    }  # fmt: skip


def _arm(upper: float | None, lower: float | None) -> float | None:
    return None if upper is None or lower is None else max(0.0, upper - lower)
