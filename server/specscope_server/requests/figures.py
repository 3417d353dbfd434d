"""Charts of finished requests, as plain plotly dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Floats
from specscope_server.acceptance.survival import LENGTH_STEP, length_classes
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
from specscope_server.requests.breakdown_schemas import Breakdown, Part
from specscope_server.requests.outliers import Judgement
from specscope_server.requests.population import Population

LENGTHS = Words(
    name="requests-accept-length",
    title="Accept length of requests",
    question="Do all requests gain, or only some?",
    definition="Finished requests by their own τ, in classes of 0.25.",
    unit="requests",
)
PARTS = Words(
    name="requests-breakdown",
    title="Accept length by part",
    question="Which requests gain most?",
    definition="τ pooled over the cycles of each part, with 95 % intervals that take requests as clusters.",
    unit="tokens per cycle",
)
POSITIONS = Words(
    name="requests-breakdown-positions",
    title="Conditional acceptance by part",
    question="At which draft do the parts differ?",
    definition="αₖ: share of the cycles that offered draft k in which it was accepted. Hollow: too few.",
    unit="share",
)
MAX_LINES = 6
"""Largest parts whose positions are drawn; more lines cannot be told apart."""
TICK_CHARACTERS = 18
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True, slots=True)
class LengthData:
    """What the distribution of accept lengths is drawn from."""

    population: Population
    judgement: Judgement
    is_demo: bool


def lengths_figure(data: LengthData, theme: Theme) -> Figure:
    """Requests by their own τ, stacked by what the rule for outliers says of them, with both means."""
    population, judgement = data.population, data.judgement
    lengths = population.lengths
    depth = max([1, *(row.depth or len(row.histogram or ()) - 1 for row in population.rows)])
    depth = max(depth, int(np.ceil(lengths.max(initial=1.0) - 1)))
    layout = _layout(theme, "linear", "accept length τ of a request")
    layout["xaxis"].update(
        range=[0.9, depth + 1.35], tick0=1, dtick=0.5 if depth < 5 else 1, hoverformat=".2f"
    )
    layout["yaxis"].update(title={"text": "requests", "standoff": 8}, rangemode="tozero")
    layout["barmode"] = "stack"
    low, high = judgement.low(lengths), judgement.high(lengths)
    groups: list[tuple[str, NDArray[np.bool_], str, str]] = [
        ("as expected", judgement.judged & ~judgement.outlying, theme.accepted, ""),
        ("not judged", ~judgement.judged, theme.idle, ""),
        ("stand apart, low", low, theme.rejected, "\\"),
        ("stand apart, high", high, theme.draft, "/"),
    ]
    traces = [
        _bars(name, lengths[chosen], depth, color, pattern)
        for name, chosen, color, pattern in groups
        if chosen.any()
    ]
    _add_means(layout, population, theme)
    words = replace(LENGTHS, definition=" ".join(filter(None, [LENGTHS.definition, _means(population)])))
    return _finish({"data": traces, "layout": layout}, theme, words, "accept length", data.is_demo)


def _bars(name: str, lengths: Floats, depth: int, color: str, pattern: str) -> dict[str, Any]:
    bounds, counts = length_classes(lengths, depth)
    return {
        "type": "bar", "name": name, "x": [round(bound + LENGTH_STEP / 2, 3) for bound in bounds],
        "width": 0.9 * LENGTH_STEP, "y": floats(map(float, counts)), "hovertemplate": "%{y:.0f} requests",
        "marker": {"color": color, "pattern": {"shape": pattern, "size": 5}},
    }  # fmt: skip


def _two_means(population: Population) -> tuple[float, float] | None:
    """Return (pooled τ, mean of requests)."""
    if not population.rows:
        return None
    return 1 + float(population.accepted.sum() / population.cycles.sum()), float(population.lengths.mean())


def _add_means(layout: dict[str, Any], population: Population, theme: Theme) -> None:
    means = _two_means(population)
    if means is None:
        return
    for value, name, dash in zip(means, ("pooled", "mean"), ("solid", "dot"), strict=True):
        is_left = value < max(means) or (means[0] == means[1] and name == "pooled")
        layout["shapes"].append({
            "type": "line", "xref": "x", "yref": "paper", "x0": value, "x1": value, "y0": 0, "y1": 1,
            "line": {"color": theme.ink, "width": 1.5, "dash": dash},
        })  # fmt: skip
        layout["annotations"].append({
            "xref": "x", "yref": "paper", "x": value, "y": 1, "yanchor": "bottom", "showarrow": False,
            "xanchor": "right" if is_left else "left",
            "text": f" {name} {value:.2f} ", "font": {"size": 11, "color": theme.ink_soft},
        })  # fmt: skip


def _means(population: Population) -> str:
    means = _two_means(population)
    if means is None:
        return "No request of this range reported counts."
    both = f"Pooled over cycles τ = {means[0]:.2f}, mean of requests {means[1]:.2f}."
    return " ".join(filter(None, [both, population.note()]))


def parts_figure(data: Breakdown, theme: Theme) -> Figure:
    """τ of each part with its interval, and the mean of its requests."""
    layout = _layout(theme, "category", data.title)
    names = _ticks(data.parts)
    layout["yaxis"].update(
        title={"text": "τ", "standoff": 8}, range=[1, _top(data.parts)], hoverformat=".2f", tick0=1,
        dtick=0.5 if _top(data.parts) < 4.5 else 1,
    )  # fmt: skip
    shown = [[f"{part.requests:,} requests, {part.cycles:,} cycles" for part in data.parts]]
    pooled = {
        "type": "scatter", "mode": "markers", "name": "pooled τ", "x": names,
        "y": floats(part.accept_length for part in data.parts),
        "error_y": _errors(data.parts, theme.accepted), "text": shown[0],
        "marker": {
            "size": 10, "color": theme.accepted,
            "symbol": ["circle-open" if part.is_few else "circle" for part in data.parts],
        },
        "hovertemplate": "%{y:.2f} (%{text})",
    }  # fmt: skip
    mean = {
        "type": "scatter", "mode": "markers", "name": "mean of requests", "x": names,
        "y": floats(part.request_mean_accept_length for part in data.parts),
        "marker": {"size": 9, "color": theme.draft, "symbol": "line-ew-open", "line": {"width": 2}},
        "hovertemplate": "%{y:.2f}",
    }  # fmt: skip
    said = " ".join(filter(None, [PARTS.definition, "Hollow: too few cycles.", data.note]))
    words = replace(PARTS, definition=said)
    return _finish({"data": [pooled, mean], "layout": layout}, theme, words, "part", data.is_demo)


def _top(parts: Sequence[Part]) -> float:
    """Return K + 1 where it is near, else a little above the highest bound."""
    highest = max([1.5, *(part.accept_length_high or part.accept_length for part in parts)])
    deepest = max([1, *(depth or 0 for part in parts for depth in part.depths)])
    return max(min(highest * 1.08, deepest + 1.05), highest * 1.02)


def _errors(parts: Sequence[Part], color: str) -> dict[str, Any]:
    def distance(part: Part, end: float | None) -> float | None:
        return None if end is None else abs(end - part.accept_length)

    return {
        "type": "data", "symmetric": False, "color": color, "thickness": 1.4, "width": 4,
        "array": floats(distance(part, part.accept_length_high) for part in parts),
        "arrayminus": floats(distance(part, part.accept_length_low) for part in parts),
    }  # fmt: skip


def _ticks(parts: Sequence[Part]) -> list[str]:
    """Return names short enough to stand below an axis, all different; names are untrusted."""
    found: list[str] = []
    for part in parts:
        short = label(part.name, TICK_CHARACTERS) or "(empty)"
        found.append(short if short not in found else f"{short} #{len(found) + 1}")
    return found


def part_positions_figure(data: Breakdown, theme: Theme) -> Figure:
    """αₖ of the largest parts over k, y from 0 to 1."""
    ticks = _ticks(data.parts)
    named = sorted(zip(data.parts, ticks, strict=True), key=lambda pair: -pair[0].cycles)[:MAX_LINES]
    deepest = max((len(part.positions) for part, _ in named), default=1)
    layout = _layout(theme, "linear", "draft position k")
    layout["xaxis"].update(range=[0.6, max(deepest, 1) + 0.4], tick0=1, dtick=1)
    layout["yaxis"].update(range=[0, 1.04], tick0=0, dtick=0.2, tickformat=".0%", hoverformat=".1%")
    colors = (theme.accepted, theme.draft, theme.verify, theme.sampling, theme.rejected, theme.host)
    traces = [
        _line(part, name, color, symbol, dash)
        for (part, name), color, symbol, dash in zip(named, colors, SYMBOLS, DASHES, strict=False)
    ]
    notes = [data.note] if data.note else []
    if len(data.parts) > MAX_LINES:
        notes.append(f"The {MAX_LINES} parts with most cycles are drawn, of {len(data.parts)}.")
    words = replace(POSITIONS, definition=" ".join([POSITIONS.definition, *notes]))
    return _finish({"data": traces, "layout": layout}, theme, words, "position", data.is_demo)


def _line(part: Part, name: str, color: str, symbol: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": name,
        "x": [position.position for position in part.positions],
        "y": floats(position.conditional for position in part.positions),
        "line": {"color": color, "width": 1.8, "dash": dash},
        "marker": {
            "color": color, "size": 8,
            "symbol": [f"{symbol}-open" if position.is_few else symbol for position in part.positions],
        },
        "text": [f"{position.accepted:,} of {position.offered:,}" for position in part.positions],
        "hovertemplate": "%{y:.1%} (%{text})",
    }  # fmt: skip


def _layout(theme: Theme, kind: str, title: str) -> dict[str, Any]:
    """Return a layout whose x axis is not time; it neither zooms nor pans."""
    layout = time_layout(theme, 0, 1)
    plain = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor", "zeroline")}
    layout["xaxis"] = {
        **plain, "type": kind, "fixedrange": True, "title": {"text": label(title), "standoff": 4},
    }  # fmt: skip
    layout["dragmode"] = False
    return layout


def _finish(figure: Figure, theme: Theme, words: Words, along: str, is_demo: bool) -> Figure:
    if is_demo:
        add_watermark(figure["layout"], theme)
    describe(figure, words, is_demo)
    figure["layout"]["meta"]["x"] = along
    return figure
