"""Charts of the verify-cost surface, of ranks and of two launches, as plain plotly dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specscope_server.kit.figures import Figure, Words, floats, label
from specscope_server.kit.figures_theme import Theme
from specscope_server.timing.colours import bar_marker
from specscope_server.timing.figures import finish, named_layout
from specscope_server.timing.schemas import (
    ComparedPhase,
    RankTime,
    SurfaceCell,
    TimingComparison,
    TimingRanks,
    TimingSurface,
)
from specscope_server.timing.statistics import BATCH_BUCKETS, bucket_place

SURFACE = Words(
    name="time-surface",
    title="Verify cost by batch size and D",
    question="What does verification cost, and how does it grow?",
    definition="T_v = Σ verify / Σ cycles in each batch size; hollow points have fewer than 200 cycles.",
    unit="ms",
)
RANKS = Words(
    name="time-ranks",
    title="Verify time of each rank",
    question="Does one rank keep the others waiting?",
    definition="Σ verify / Σ cycles of each rank. "
    "Collectives end on all ranks at once: who comes last, waits least.",
    unit="ms",
)
COMPARISON = Words(
    name="time-compare",
    title="Two launches, phase by phase",
    question="What did the change do to each part of a cycle?",
    definition="Milliseconds per cycle with 95 % intervals: block bootstrap over scrapes.",
    unit="ms",
)
MAX_LINES = 6
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
UNCERTAIN_WIDTH = 1.2


def surface_figure(data: TimingSurface, theme: Theme) -> Figure:
    """One line for each launch and D over batch sizes, beside the plain decode step."""
    lines: dict[tuple[int, str], list[SurfaceCell]] = {}
    for cell in data.cells:
        if cell.verify_ms is not None:
            lines.setdefault((cell.launch_id, cell.num_draft_tokens), []).append(cell)
    shown = list(lines.items())[-MAX_LINES:]
    several = len({launch for (launch, _), _ in shown}) > 1
    traces = [
        _verify_line(f"D = {width}{f', launch {launch}' if several else ''}", cells, index, theme)
        for index, ((launch, width), cells) in enumerate(shown)
    ]
    plain = _plain_line([cell for _, cells in shown for cell in cells], theme)
    layout = named_layout(theme)
    met = {cell.batch for _, cells in shown for cell in cells}
    order = sorted(met, key=bucket_place)
    layout["xaxis"].update(
        title={"text": "requests in the batch", "standoff": 4}, categoryorder="array", categoryarray=order,
    )  # fmt: skip
    layout["yaxis"].update(title={"text": "T_v in ms", "standoff": 8}, rangemode="tozero")
    words = replace(SURFACE, definition=f"{SURFACE.definition} {_plain_words(data)}")
    figure = {"data": [*traces, *([plain] if plain else [])], "layout": layout}
    return finish(figure, words, data.is_demo, theme, "batch")


def _plain_words(data: TimingSurface) -> str:
    if data.baseline is None:
        return "No plain decode step was measured here, so its cost is not drawn."
    return f"T_ar: {label(data.baseline.note, 160)}."


def _verify_line(name: str, cells: Sequence[SurfaceCell], index: int, theme: Theme) -> dict[str, Any]:
    ordered = sorted(cells, key=lambda cell: bucket_place(cell.batch))
    symbol = SYMBOLS[index % len(SYMBOLS)]
    return {
        "type": "scatter", "mode": "lines+markers", "name": label(f"T_v, {name}", 60),
        "x": [cell.batch for cell in ordered], "y": floats(cell.verify_ms for cell in ordered),
        "line": {"color": theme.verify, "width": 1.8, "dash": DASHES[index % len(DASHES)]},
        "marker": {
            "color": theme.verify, "size": 8,
            "symbol": [f"{symbol}-open" if cell.is_few else symbol for cell in ordered],
        },
        "error_y": _errors(
            [cell.verify_ms for cell in ordered], [cell.verify_low for cell in ordered],
            [cell.verify_high for cell in ordered], theme.verify,
        ),
        "customdata": [f"{cell.cycles:,.0f} cycles{_ratio(cell)}" for cell in ordered],
        "hovertemplate": "batch %{x}: %{y:.2f} ms (%{customdata})",
    }  # fmt: skip


def _ratio(cell: SurfaceCell) -> str:
    found = "" if cell.verify_ratio is None else f", {cell.verify_ratio:.2f} × a plain step"
    if cell.expected_experts_ratio is not None:
        found += f", experts predict up to {cell.expected_experts_ratio:.2f} ×"
    return found


def _plain_line(cells: Sequence[SurfaceCell], theme: Theme) -> dict[str, Any] | None:
    steps = {cell.batch: cell.plain_ms for cell in cells if cell.plain_ms is not None}
    if not steps:
        return None
    order = [bucket for bucket in BATCH_BUCKETS if bucket in steps]
    return {
        "type": "scatter", "mode": "lines+markers", "name": "T_ar, a plain decode step", "x": order,
        "y": floats(steps[bucket] for bucket in order), "line": {"color": theme.accent, "width": 1.8},
        "marker": {"color": theme.accent, "size": 8, "symbol": "line-ew-open"},
        "hovertemplate": "batch %{x}: %{y:.2f} ms",
    }  # fmt: skip


def _errors(
    values: Sequence[float | None],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
    colour: str,
) -> dict[str, Any]:
    def side(bounds: Sequence[float | None], sign: int) -> dict[str, str]:
        return floats(
            0.0 if value is None or bound is None else sign * (bound - value)
            for value, bound in zip(values, bounds, strict=True)
        )

    return {
        "type": "data", "symmetric": False, "array": side(highs, 1), "arrayminus": side(lows, -1),
        "color": colour, "thickness": UNCERTAIN_WIDTH, "width": 3,
    }  # fmt: skip


def ranks_figure(data: TimingRanks, theme: Theme) -> Figure:
    """A bar for each rank: verify, and what was measured beside it; the straggler is named."""
    layout = named_layout(theme)
    names = [_short(item) for item in data.ranks]
    traces = [
        {
            "type": "bar", "name": title, "x": names,
            "y": floats(getattr(item, field) for item in data.ranks),
            "marker": bar_marker(phase, theme),
            "hovertemplate": f"%{{x}}: {title} %{{y:.3f}} ms<extra></extra>",
        }
        for title, field, phase in (("verify", "verify_ms", "verify"), ("other parts", "other_ms", "host"))
    ] if data.ranks else []  # fmt: skip
    layout["yaxis"].update(title={"text": "ms per cycle", "standoff": 8}, rangemode="tozero")
    layout.update(barmode="stack")
    words = replace(RANKS, definition=f"{RANKS.definition} {data.verdict}.".replace("..", "."))
    return finish({"data": traces, "layout": layout}, words, data.is_demo, theme, "rank")


def _short(item: RankTime) -> str:
    """Name a rank by the numbers that are not 0 alone: tp always."""
    parts = [f"dp {item.dp_rank}"] if item.dp_rank else []
    parts += [f"pp {item.pp_rank}"] if item.pp_rank else []
    return " ".join([*parts, f"tp {item.tp_rank}"])


def comparison_figure(data: TimingComparison, theme: Theme) -> Figure:
    """Two bars for each phase, before and after, with intervals and the change in the hover text."""
    layout = named_layout(theme)
    traces = []
    if data.a and data.b and data.phases:
        traces = [
            _side_bars(data.phases, "a", label(f"before: {data.a.words}", 60), theme),
            _side_bars(data.phases, "b", label(f"after: {data.b.words}", 60), theme),
        ]
    layout["yaxis"].update(title={"text": "ms per cycle", "standoff": 8}, rangemode="tozero")
    layout.update(barmode="group")
    words = replace(COMPARISON, question=f"{COMPARISON.question} {data.verdict}.")
    return finish({"data": traces, "layout": layout}, words, data.is_demo, theme, "phase")


def _side_bars(rows: Sequence[ComparedPhase], side: str, name: str, theme: Theme) -> dict[str, Any]:
    tint = theme.reference if side == "a" else theme.serving
    values, lows, highs = ([getattr(row, f"{side}_{part}") for row in rows] for part in ("ms", "low", "high"))
    return {
        "type": "bar", "name": name, "x": [row.title for row in rows], "y": floats(values),
        "marker": {"color": tint}, "error_y": _errors(values, lows, highs, theme.ink_soft),
        "customdata": [_change_words(row) for row in rows],
        "hovertemplate": "%{x}: %{y:.2f} ms%{customdata}<extra></extra>",
    }  # fmt: skip


def _change_words(row: ComparedPhase) -> str:
    if row.change is None:
        return ""
    bounds = (
        "" if row.low is None or row.high is None else f" ({100 * row.low:+.1f} … {100 * row.high:+.1f} %)"
    )
    return f", change {100 * row.change:+.1f} %{bounds}"
