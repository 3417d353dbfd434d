"""Charts of what is known now: slots by phase, densities, quantile bands, distance by boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specscope_collectors.states.distances import quantiles
from specscope_collectors.states.sums import Norms
from specscope_server.drift.figure_parts import (
    DASHES,
    PHASE_TITLES,
    STATE_TITLES,
    SYMBOLS,
    category_layout,
    finish,
    main_phase,
    plain_layout,
    slot_colours,
    stacked_axes,
)
from specscope_server.drift.schemas import Cell, CellState, CurvePoint, Drift
from specscope_server.kit.figures import Figure, Words, floats, label
from specscope_server.kit.figures_theme import Theme

GRID = Words(
    name="drift-grid",
    title="Slots by phase",
    question="Which slot is not what the draft was trained on, and where?",
    definition="✓ both statistics find the trained boundary nearest; ✕ two of three windows, or an "
    "invariant, say otherwise.",
    unit="verdict",
)
DENSITIES = Words(
    name="drift-densities",
    title="Norms in training and in serving",
    question="Are the states of the size they were in training?",
    definition="Share of rows by ln‖h‖, from the median of training; sinks and the first four positions are "
    "left out.",
    unit="share",
)
BANDS = Words(
    name="drift-bands",
    title="Quantiles of norms",
    question="How far apart are the norms, beside how much they vary?",
    definition="Thin 5–95 %, thick 25–75 %, dot median of ln‖h‖, from the median of training.",
    unit="nats",
)
BOUNDARIES = Words(
    name="drift-boundaries",
    title="Distance by boundary",
    question="Which boundary are the states of each slot nearest to?",
    definition="Upper: mean 1 − cos per token id. Lower: nats per row above the nearest by diagonal "
    "Gaussians. Where both have their minimum is the boundary; hollow marks are what was trained.",
    unit="distance",
)
CODES = {
    CellState.NO_DATA: 0, CellState.NOT_COMPARABLE: 0, CellState.NOT_ENOUGH: 0, CellState.SAME: 1,
    CellState.SUSPECTED: 2, CellState.WRONG: 3,
}  # fmt: skip
BIN = 0.04
"""Nats of one step of a density: two bins of a profile."""
NEAR = 4
"""Boundaries on each side of the nearest one that the axis is made for."""


def grid_figure(data: Drift, theme: Theme) -> Figure:
    """A cell for each slot (y) and phase (x), with what it is in words."""
    slots, phases = [slot.slot for slot in data.slots], data.phases
    cells = {(cell.slot, cell.phase): cell for cell in data.cells}
    layout = category_layout(theme)
    layout["yaxis"].update(type="category", autorange="reversed", showgrid=False, automargin=True)
    layout["xaxis"].update(showgrid=False, side="top")
    layout.update(showlegend=False, height=90 + 56 * max(len(slots), 1))
    layout["margin"] = {"l": 60, "r": 16, "t": 40, "b": 16}
    whole = [[cells.get((slot, phase)) for phase in phases] for slot in slots]
    values = [CODES[cell.state] if cell else None for line in whole for cell in line]
    levels = (theme.idle, theme.accepted, theme.sampling, theme.bad)
    scale = [[edge, colour] for index, colour in enumerate(levels) for edge in (index / 4, (index + 1) / 4)]
    trace: dict[str, Any] = {
        "type": "heatmap", "name": "verdict", "x": [PHASE_TITLES[phase] for phase in phases],
        "y": [f"slot {slot}" for slot in slots],
        "z": {**floats(values), "shape": f"{len(slots)},{len(phases)}"},
        "text": [[_grid_text(cell) for cell in line] for line in whole],
        "customdata": [[_hover(cell) for cell in line] for line in whole],
        "texttemplate": "%{text}", "textfont": {"size": 13}, "xgap": 3, "ygap": 3, "zmin": -0.5, "zmax": 3.5,
        "colorscale": scale, "showscale": False, "opacity": 0.85,
        "hovertemplate": "%{y}, %{x}: %{customdata}<extra></extra>",
    }  # fmt: skip
    figure = {"data": [trace] if slots and phases else [], "layout": layout}
    note = f"{data.resolution_note[:200]} Rows of the class other."
    return finish(figure, GRID, data.is_demo, theme, note=note, along="phase", upward="slot")


def _grid_text(cell: Cell | None) -> str:
    if cell is None:
        return STATE_TITLES[CellState.NO_DATA]
    is_named = cell.state in (CellState.WRONG, CellState.SUSPECTED) and cell.fault in (
        "wrong_boundary", "other_slot",
    )  # fmt: skip
    if is_named and cell.vcos is not None:
        return f"{STATE_TITLES[cell.state][0]} {label(cell.vcos.place, 24)}"
    if cell.state == CellState.WRONG:
        return f"✕ {cell.fault.replace('_', ' ')}"
    return STATE_TITLES[cell.state]


def _hover(cell: Cell | None) -> str:
    if cell is None:
        return "no rows"
    return (
        f"{label(cell.words, 120)}<br>{cell.rows:,} rows of {cell.requests:,} requests, {cell.votes} windows"
    )


@dataclass(frozen=True, slots=True)
class Drawn:
    """Norms of one slot, of training or of serving in one phase."""

    slot: int
    name: str
    is_reference: bool
    norms: Norms
    rows: int
    requests: int


def densities_figure(drawn: Sequence[Drawn], is_demo: bool, theme: Theme, note: str) -> Figure:
    """A row for each slot: training filled, serving as lines by phase."""
    slots = sorted({each.slot for each in drawn})
    layout = plain_layout(theme)
    axes = stacked_axes(layout, [f"slot {slot}" for slot in slots])
    layout.update(height=max(160 * len(slots), 260) + 60, hovermode="closest")
    layout["xaxis"]["title"] = {"text": "ln‖h‖ from the training median, nats", "standoff": 4}
    for axis in axes:
        layout[f"yaxis{axis[1:]}"].update(rangemode="tozero", tickformat=".0%", nticks=3)
    centres = centres_of(drawn)
    traces = [
        _density(each, centres[each.slot], axes[slots.index(each.slot)], _look(each, drawn, theme))
        for each in drawn
        if each.norms.rows
    ]
    _one_legend_each(traces)
    figure = {"data": traces, "layout": layout}
    return finish(figure, DENSITIES, is_demo, theme, note=note, along="nats")


def centres_of(drawn: Sequence[Drawn]) -> dict[int, float]:
    """Return the median of ln‖h‖ of each slot: of training where it is known, else of what there is."""
    found: dict[int, float] = {}
    for each in sorted(drawn, key=lambda each: not each.is_reference):
        if each.norms.rows:
            found.setdefault(each.slot, quantiles(each.norms, [0.5])[0])
    return found


def _look(each: Drawn, drawn: Sequence[Drawn], theme: Theme) -> dict[str, Any]:
    if each.is_reference:
        return {"line": {"color": theme.reference, "width": 1.5, "shape": "hv"}, "fill": "tozeroy"}
    others = list(dict.fromkeys(one.name for one in drawn if not one.is_reference))
    dash = DASHES[others.index(each.name) % len(DASHES)]
    return {"line": {"color": theme.serving, "width": 2, "shape": "hv", "dash": dash}}


def _density(each: Drawn, centre: float, axis: str, look: dict[str, Any]) -> dict[str, Any]:
    norms = each.norms
    step = max(round(BIN / norms.width), 1)
    first = norms.first // step
    padded = np.concatenate((np.zeros(norms.first - first * step), norms.counts))
    padded = np.concatenate((padded, np.zeros(-len(padded) % step)))
    shares = np.concatenate(([0.0], padded.reshape(-1, step).sum(axis=1) / norms.rows, [0.0]))
    x = [(first - 1 + index) * step * norms.width - centre for index in range(len(shares))]
    hover = (
        f"{label(each.name)}: {each.rows:,} rows of {each.requests:,} requests<br>%{{y:.1%}}<extra></extra>"
    )
    return {
        "type": "scatter", "mode": "lines", "name": label(each.name), "x": x, "y": floats(shares),
        "yaxis": axis, "legendgroup": label(each.name), "hovertemplate": hover, **look,
    }  # fmt: skip


def _one_legend_each(traces: Sequence[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for trace in traces:
        trace["showlegend"] = trace["name"] not in seen
        seen.add(trace["name"])


def bands_figure(drawn: Sequence[Drawn], is_demo: bool, theme: Theme, note: str) -> Figure:
    """Quantile bands of each slot, training and serving side by side."""
    layout = category_layout(theme)
    layout["yaxis"].update(title={"text": "nats", "standoff": 8})
    centres = centres_of(drawn)
    traces: list[dict[str, Any]] = []
    for is_reference, name, colour in (
        (True, "training", theme.reference),
        (False, "serving", theme.serving),
    ):
        chosen = [each for each in drawn if each.is_reference is is_reference and each.norms.rows]
        if chosen:
            traces += _bands(name, chosen, centres, colour, theme.paper)
    order = [_place(each) for each in sorted(drawn, key=lambda each: each.slot)]
    layout["xaxis"].update(categoryorder="array", categoryarray=order)
    return finish({"data": traces, "layout": layout}, BANDS, is_demo, theme, note=note, along="place")


def _place(each: Drawn) -> str:
    return f"{each.slot} {label(each.name, 24)}"


def _bands(
    name: str, chosen: Sequence[Drawn], centres: dict[int, float], colour: str, paper: str
) -> list[dict[str, Any]]:
    lines: dict[str, list[tuple[str, float | None]]] = {"5–95 %": [], "25–75 %": [], "median": []}
    for each in chosen:
        q05, q25, q50, q75, q95 = (
            value - centres[each.slot] for value in quantiles(each.norms, (0.05, 0.25, 0.5, 0.75, 0.95))
        )
        place = _place(each)
        lines["5–95 %"] += [(place, q05), (place, q95), (place, None)]
        lines["25–75 %"] += [(place, q25), (place, q75), (place, None)]
        lines["median"].append((place, q50))
    looks: dict[str, dict[str, Any]] = {
        "5–95 %": {"mode": "lines", "line": {"color": colour, "width": 2}},
        "25–75 %": {"mode": "lines", "line": {"color": colour, "width": 9}},
        "median": {
            "mode": "markers",
            "marker": {"color": paper, "size": 7, "line": {"color": colour, "width": 2}},
        },
    }
    return [
        {
            "type": "scatter", "name": f"{name}, {part}", "x": [place for place, _ in points],
            "y": floats(value for _, value in points), "showlegend": part == "median",
            "hovertemplate": "%{x}: %{y:.3f} nats<extra>%{fullData.name}</extra>", **looks[part],
        }
        for part, points in lines.items()
    ]  # fmt: skip


def boundaries_figure(data: Drift, theme: Theme) -> Figure:
    """The curves whose minimum names the boundary, by both statistics, of the phase with most rows."""
    phase = main_phase((cell.phase, cell.rows) for cell in data.cells)
    points = [point for point in data.curve if point.phase == phase]
    layout = plain_layout(theme)
    axes = stacked_axes(layout, ["1 − cos", "nats a row"])
    layout["height"] = 420
    by_name = any(point.boundary is None for point in points)
    layout["xaxis"].update(
        {"type": "category"} if by_name else {"title": {"text": "boundary", "standoff": 4}, "dtick": None}
    )
    size = data.reference or data.boundaries_reference
    width = size.hidden_size if size else 1
    traces = []
    for value, axis, scale in (("vcos", axes[0], 1.0), ("dnll", axes[1], float(width))):
        top = _top(points, value) * scale
        layout[f"yaxis{axis[1:]}"].update(range=[-0.06 * top, top], tickformat="~g")
        traces += _curves(points, value, axis, scale, theme, by_name)
    _one_legend_each(traces)
    note = f"Phase: {PHASE_TITLES[phase]}." if phase else ""
    figure = {"data": traces, "layout": layout}
    return finish(figure, BOUNDARIES, data.is_demo, theme, note=note, along="boundary")


def _top(points: Sequence[CurvePoint], value: str) -> float:
    """Return where the axis ends: what is near each slot's nearest boundary decides, not what is far away."""
    tops = []
    for slot in {point.slot for point in points}:
        line = [getattr(point, value) for point in points if point.slot == slot]
        known = [each for each in line if each is not None]
        if known:
            nearest = line.index(min(known))
            near = [each for each in line[max(nearest - NEAR, 0) : nearest + NEAR + 1] if each is not None]
            tops.append(max(near))
    return 1.1 * max(tops, default=1.0) or 1.0


def _curves(
    points: Sequence[CurvePoint], value: str, axis: str, scale: float, theme: Theme, by_name: bool
) -> list[dict[str, Any]]:
    traces = []
    for slot in sorted({point.slot for point in points}):
        line = [point for point in points if point.slot == slot]
        known = [getattr(point, value) for point in line]
        least = min((each for each in known if each is not None), default=None)
        symbol = SYMBOLS[slot % len(SYMBOLS)]
        colour = slot_colours(theme)[slot % len(SYMBOLS)]
        traces.append({
            "type": "scatter", "mode": "lines+markers", "name": f"slot {slot}",
            "x": [label(point.place) if by_name else point.boundary for point in line],
            "y": floats(None if each is None else each * scale for each in known), "yaxis": axis,
            "legendgroup": f"slot {slot}",
            "line": {"color": colour, "width": 1.8, "dash": DASHES[slot % len(DASHES)]},
            "marker": {
                "color": colour,
                "size": [_size(point, each, least) for point, each in zip(line, known, strict=True)],
                "symbol": [f"{symbol}-open" if point.is_trained else symbol for point in line],
                "line": {"width": 2, "color": colour},
            },
            "customdata": [label(point.place) for point in line],
            "hovertemplate": "%{customdata}: %{y:.4g}<extra>%{fullData.name}</extra>",
        })  # fmt: skip
    return traces


def _size(point: CurvePoint, value: float | None, least: float | None) -> int:
    """Return how large a mark is: the nearest boundary and the trained one stand out."""
    return 13 if point.is_trained else 11 if value is not None and value == least else 4
