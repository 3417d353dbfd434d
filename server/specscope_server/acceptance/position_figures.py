"""Charts by draft position and by request, as plain plotly dicts built from `AcceptancePositions`.

Each launch and depth is a line of its own: positions of different K are never averaged. A point whose draft
was offered in too few cycles to say much is drawn hollow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specscope_server.acceptance.position_schemas import AcceptancePositions, PositionGroup, PositionPoint
from specscope_server.kit.figures import (
    Figure,
    Words,
    add_watermark,
    describe,
    epoch_ms,
    floats,
    label,
    line_trace,
    time_layout,
)
from specscope_server.kit.figures_theme import Theme

POSITIONS = Words(
    name="positions",
    title="Acceptance by draft position",
    question="Up to which draft is it worth drafting?",
    definition="Survival Sₖ: share of cycles that accept at least k drafts; τ = 1 + Σ Sₖ. Conditional αₖ: "
    "share of those in which draft k was offered, because all before it were accepted.",
    unit="share",
)
REQUEST_LENGTHS = Words(
    name="request-lengths",
    title="Accept length of single requests",
    question="Do all requests gain, or only some?",
    definition="Finished requests by their own τ, in classes of 0.25.",
    unit="requests",
)
NOT_APART = " Where drafts are counted as they happen, single requests are not told apart."
MAX_GROUPS = 4
"""Newest launches and depths drawn; more lines cannot be told apart."""
DASHES = ("solid", "dash", "dashdot", "dot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
HATCHES = ("", "/", "x", ".")


def positions_figure(data: AcceptancePositions, theme: Theme) -> Figure:
    """Survival and conditional acceptance over k with 95 % intervals, y from 0 to 1."""
    groups = _shown(data)
    depth = max((len(group.positions) for group in groups), default=1)
    figure = _start(data, theme, "draft position k", [0.5, depth + 0.5])
    for index, group in enumerate(groups):
        figure["data"] += _lines(group, index, _suffix(group, groups), theme)
    figure["layout"]["xaxis"].update(tick0=1, dtick=1)
    figure["layout"]["yaxis"].update(
        title={"text": "share", "standoff": 8}, range=[0, 1.04], tick0=0, dtick=0.2, tickformat=".0%",
        hoverformat=".1%",
    )  # fmt: skip
    return _finish(figure, data, theme, POSITIONS, "position")


def request_lengths_figure(data: AcceptancePositions, theme: Theme) -> Figure:
    """Requests by their own accept length: bars, one hatch for each launch and depth, the newest plain."""
    groups = [group for group in _shown(data) if group.length_bounds]
    top = max((group.length_bounds[-1] for group in groups), default=2.0)
    figure = _start(data, theme, "τ of a request (tokens/cycle)", [0.9, top + 0.35])
    for index, group in enumerate(groups):
        figure["data"].append(
            {
                "type": "bar", "name": label(f"requests{_suffix(group, groups)}", 100),
                "x": [round(bound + 0.125, 3) for bound in group.length_bounds], "width": 0.23,
                "y": floats(float(count) for count in group.length_requests),
                "marker": {
                    "color": theme.accepted,
                    "pattern": {"shape": HATCHES[(len(groups) - 1 - index) % len(HATCHES)], "size": 5},
                },
                "hovertemplate": "%{y:.0f} requests",
            }
        )  # fmt: skip
    figure["layout"]["barmode"] = "stack"
    figure["layout"]["xaxis"].update(tick0=1, dtick=0.5, hoverformat=".2f")
    figure["layout"]["yaxis"].update(title={"text": "requests", "standoff": 8}, rangemode="tozero")
    missing = NOT_APART if len(groups) < len(_shown(data)) else ""
    words = replace(REQUEST_LENGTHS, definition=f"{REQUEST_LENGTHS.definition}{_two_means(groups)}{missing}")
    return _finish(figure, data, theme, words, "accept length")


def _shown(data: AcceptancePositions) -> list[PositionGroup]:
    return data.groups[-MAX_GROUPS:]


def _suffix(group: PositionGroup, groups: Sequence[PositionGroup]) -> str:
    """Return what tells a group from the others; nothing for the only one. Versions are untrusted."""
    if len(groups) == 1:
        return ""
    depth = "K varies" if group.num_steps is None else f"K = {group.num_steps}"
    return f", launch {group.launch.id} ({depth})"


def _two_means(groups: Sequence[PositionGroup]) -> str:
    """Return both means of the newest group: they differ when long and short requests do."""
    if not groups:
        return ""
    newest = groups[-1]
    if newest.request_mean_accept_length is None:
        return ""
    return (
        f" Pooled over cycles τ = {newest.accept_length:.2f}, mean of requests "
        f"{newest.request_mean_accept_length:.2f}{_suffix(newest, groups)}."
    )


def _lines(group: PositionGroup, index: int, suffix: str, theme: Theme) -> list[dict[str, Any]]:
    kinds = (
        ("survival", "survival Sₖ", theme.accepted),
        ("conditional", "conditional αₖ", theme.draft),
    )
    return [
        _line(group.positions, field, label(f"{name}{suffix}", 100), color, index)
        for field, name, color in kinds
    ]


def _line(points: Sequence[PositionPoint], field: str, name: str, color: str, index: int) -> dict[str, Any]:
    values = [getattr(point, field) for point in points]
    trace = line_trace(name, [str(point.position) for point in points], values, color)
    symbol = SYMBOLS[index % len(SYMBOLS)]
    is_survival = field == "survival"
    trace.update(
        x=[point.position for point in points],
        mode="lines+markers",
        line={"color": color, "width": 1.8, "dash": DASHES[(2 * index + (not is_survival)) % len(DASHES)]},
        marker={
            "color": color, "size": 8,
            "symbol": [f"{symbol}-open" if point.is_few else symbol for point in points],
        },
        error_y=_bars(points, field, color),
        text=[_counts(point, is_survival) for point in points],
        hovertemplate="%{y:.1%} (%{text})",
    )  # fmt: skip
    return trace


def _bars(points: Sequence[PositionPoint], field: str, color: str) -> dict[str, Any]:
    """Return the intervals as plotly's distances up and down from the value."""

    def distance(point: PositionPoint, bound: str, sign: int) -> float | None:
        value, end = getattr(point, field), getattr(point, f"{field}_{bound}")
        return None if value is None or end is None else max(sign * (end - value), 0.0)

    return {
        "type": "data", "symmetric": False, "color": color, "thickness": 1, "width": 3,
        "array": floats(distance(point, "high", 1) for point in points),
        "arrayminus": floats(distance(point, "low", -1) for point in points),
    }  # fmt: skip


def _counts(point: PositionPoint, is_survival: bool) -> str:
    few = ", few" if point.is_few else ""
    return (
        f"{point.accepted:,} cycles{few}" if is_survival else f"{point.accepted:,} of {point.offered:,}{few}"
    )


def _start(data: AcceptancePositions, theme: Theme, title: str, limits: list[float]) -> Figure:
    """Return an empty figure with an axis that is not time; it neither zooms nor pans."""
    layout = time_layout(theme, epoch_ms(data.from_), epoch_ms(data.to))
    plain = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor", "zeroline")}
    layout["xaxis"] = {
        **plain, "type": "linear", "range": limits, "fixedrange": True,
        "title": {"text": title, "standoff": 4},
    }  # fmt: skip
    layout["dragmode"] = False
    return {"data": [], "layout": layout}


def _finish(figure: Figure, data: AcceptancePositions, theme: Theme, words: Words, along: str) -> Figure:
    if data.is_demo:
        add_watermark(figure["layout"], theme)
    notes = [data.note] if data.note else []
    hidden = len(data.groups) - len(_shown(data))
    if hidden:
        notes.append(f"{hidden} older launches or depths are not drawn.")
    notes += sorted({f"{group.note}." for group in _shown(data) if group.note})
    describe(figure, replace(words, definition=" ".join([words.definition, *notes])), data.is_demo)
    figure["layout"]["meta"]["x"] = along
    return figure
