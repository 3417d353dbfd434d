"""Heat maps of acceptance by draft position over time, as plain plotly dicts built from a `PositionTrend`.

A bucket that was not observed stays empty. A cell with too few cycles is drawn in greys, in a trace of its
own; the counts stand in the hover either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specscope_server.acceptance.position_trend_schemas import PositionCell, PositionTrend
from specscope_server.kit.figures import (
    Figure,
    Marker,
    Words,
    add_markers,
    add_watermark,
    describe,
    epoch_ms,
    floats,
    time_layout,
    times,
)
from specscope_server.kit.figures_theme import DARK, Theme

SURVIVAL = Words(
    name="positions-survival-over-time",
    title="Survival by position over time",
    question="Since when do cycles end earlier?",
    definition="Sₖ: share of cycles that accept at least k drafts. Grey: too few cycles to say. Empty: none "
    "was observed.",
    unit="share",
)
CONDITIONAL = Words(
    name="positions-conditional-over-time",
    title="Conditional acceptance by position over time",
    question="At which draft did something change?",
    definition="αₖ: share of the cycles that offered draft k, because all before it were accepted, in which "
    "it was accepted too. Grey: too few cycles to say. Empty: none was observed.",
    unit="share",
)
SCALE = ((0.0, "#f7f1de"), (0.25, "#c8dfb4"), (0.5, "#79bfa6"), (0.75, "#2e8c99"), (1.0, "#0f4c75"))
"""From light to dark in one direction, so that it reads without colour too."""
SCALE_DARK = ((0.0, "#2b2a22"), (0.25, "#29493f"), (0.5, "#2b7a6d"), (0.75, "#4fb3a0"), (1.0, "#d6f3c4"))


def survival_heatmap(data: PositionTrend, theme: Theme) -> Figure:
    """Survival by position (y) over time (x)."""
    return _heatmap(data, theme, SURVIVAL, "survival", "is_few", "cycles")


def conditional_heatmap(data: PositionTrend, theme: Theme) -> Figure:
    """Conditional acceptance by position (y) over time (x)."""
    return _heatmap(data, theme, CONDITIONAL, "conditional", "is_few_offered", "offered")


def _heatmap(data: PositionTrend, theme: Theme, words: Words, value: str, few: str, of: str) -> Figure:
    layout = time_layout(theme, epoch_ms(data.from_), epoch_ms(data.to))
    layout["showlegend"] = False
    layout["hovermode"] = "closest"
    layout["yaxis"].update(
        title={"text": "draft position k", "standoff": 8}, tick0=1, dtick=1, showgrid=False,
        range=[0.5, max(data.positions, 1) + 0.5],
    )  # fmt: skip
    layout["xaxis"]["showgrid"] = False
    sure = [cell for cell in data.cells if not getattr(cell, few)]
    unsure = [cell for cell in data.cells if getattr(cell, few)]
    grey = ((0.0, theme.idle), (1.0, theme.host))
    scale = SCALE_DARK if theme == DARK else SCALE
    pale: dict[str, Any] = {"name": f"{value}, few cycles", "colorscale": grey, "showscale": False}
    traces = [
        _trace(data, unsure, value, of, pale),
        _trace(data, sure, value, of, {"name": value, "colorscale": scale, "colorbar": _bar(theme)}),
    ]
    add_markers(layout, [Marker(epoch_ms(one.first_seen), _launch(one)) for one in data.launches], theme)
    if data.is_demo:
        add_watermark(layout, theme)
    figure: Figure = {"data": traces, "layout": layout}
    source = f"Source: {data.evidence}." if data.evidence else ""
    said = " ".join(part for part in (words.definition, source, data.note) if part)
    describe(figure, replace(words, definition=said), data.is_demo)
    figure["layout"]["meta"]["y"] = "position"
    return figure


def _trace(
    data: PositionTrend, cells: Sequence[PositionCell], value: str, of: str, look: dict[str, Any]
) -> dict[str, Any]:
    """Return one trace; ``z`` is positions × buckets, NaN where there is no such cell."""
    place = {time: index for index, time in enumerate(data.times)}
    width = len(data.times)
    z: list[float | None] = [None] * (width * data.positions)
    hover = [["" for _ in range(width)] for _ in range(data.positions)]
    for cell in cells:
        row, column = cell.position - 1, place[cell.time]
        z[row * width + column] = getattr(cell, value)
        hover[row][column] = f"{cell.accepted:,} of {getattr(cell, of):,} cycles"
    half_ms = data.step_seconds * 500
    return {
        "type": "heatmap", "x": times(epoch_ms(time) + half_ms for time in data.times),
        "y": list(range(1, data.positions + 1)),
        "z": {**floats(z), "shape": f"{data.positions},{width}"}, "text": hover,
        "zmin": 0, "zmax": 1, "xgap": 0, "ygap": 1, "hoverongaps": False,
        "hovertemplate": "k = %{y}: %{z:.1%} (%{text})<br>%{x}<extra>%{fullData.name}</extra>",
        **look,
    }  # fmt: skip


def _bar(theme: Theme) -> dict[str, Any]:
    return {
        "thickness": 10, "outlinewidth": 0, "tickformat": ".0%", "dtick": 0.25, "tickfont": {"size": 10},
        "len": 1, "x": 1.01, "xpad": 2, "ticklen": 3, "tickcolor": theme.line,
    }  # fmt: skip


def _launch(launch: Any) -> str:
    """Return a launch by its depth; a version is untrusted and escaped where it is drawn."""
    off = "launch" if launch.engine == "vllm" else "off"
    depth = off if launch.num_steps is None else f"K={launch.num_steps}"
    return f"{depth} · {launch.engine_version}" if launch.engine_version else depth
