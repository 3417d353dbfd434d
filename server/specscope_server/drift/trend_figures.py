"""Charts of drift over time, and of drift against acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specscope_collectors.states.rules import GROSS_DIRECTION, GROSS_NORM, Fault
from specscope_server.drift.figure_parts import (
    DASHES,
    PHASE_TITLES,
    finish,
    main_phase,
    plain_layout,
    slot_colours,
)
from specscope_server.drift.schemas import DriftPoint, DriftTrend, NoiseFloor
from specscope_server.kit.figures import (
    Figure,
    Marker,
    Words,
    add_markers,
    epoch_ms,
    floats,
    label,
    time_layout,
    times,
)
from specscope_server.kit.figures_theme import Theme

JOINT = Words(
    name="drift-joint",
    title="Drift and acceptance",
    question="Does acceptance fall where states are wrong?",
    definition="A point for each window: how much farther the trained boundary is than the nearest one "
    "(0 = it is the nearest; the worst slot), against tokens per cycle.",
    unit="τ",
)


def _words(name: str, title: str, question: str, definition: str, unit: str) -> Words:
    return Words(f"drift-trend{name}", title, question, definition, unit)


STATISTICS: dict[str, Words] = {
    "w1": _words(
        "", "Norms against training", "Did the size of the states change, and with which launch?",
        "W₁ of ln‖h‖ to the claimed profile. Text moves it, too: only beyond the gross limit it is a fault.",
        "nats",
    ),
    "mean_direction": _words(
        "-direction", "Directions against training", "Did the states turn?",
        "1 − cos of mean unit vectors to the claimed profile. Text moves it, too: only beyond the gross "
        "limit it is a fault.",
        "1 − cos",
    ),
    "channel_rms": _words(
        "-channels", "Channels against training", "Did the energy move between channels?",
        "RMS difference of ln channel RMS, centred. It follows the text; never an alarm.", "nats",
    ),
    "psi": _words(
        "-psi", "Population stability of norms", "Did the distribution of norms move?",
        "PSI over tenths of the reference. It follows the text and n; never an alarm.", "PSI",
    ),
    "ks": _words(
        "-ks", "Kolmogorov-Smirnov distance of norms", "Did the distribution of norms move?",
        "Largest difference of distribution functions of ln‖h‖. It follows the text; never an alarm.",
        "share",
    ),
}  # fmt: skip
LIMITS = {"w1": GROSS_NORM, "mean_direction": GROSS_DIRECTION}


def trend_figure(data: DriftTrend, statistic: str, theme: Theme) -> Figure:
    """A line for each slot with its noise floor; launches are marked."""
    phase = main_phase((point.phase, point.rows) for point in data.points)
    words = STATISTICS[statistic]
    layout = time_layout(theme, epoch_ms(data.from_), epoch_ms(data.to))
    layout["yaxis"].update(title={"text": words.unit, "standoff": 8}, rangemode="tozero")
    points = [point for point in data.points if point.phase == phase]
    traces: list[dict[str, Any]] = []
    for slot in sorted({point.slot for point in points}):
        own = sorted((point for point in points if point.slot == slot), key=lambda point: point.time)
        traces.append(_line(own, slot, statistic, theme))
        floor = next((one for one in data.floors if _is_of(one, slot, phase, statistic)), None)
        if floor is not None and floor.value is not None:
            traces.append(_floor(data, slot, floor.value, theme))
    limit = LIMITS.get(statistic)
    shown = [getattr(point, statistic) or 0.0 for point in points]
    if limit is not None and points:
        _add_limit(layout, limit, theme)
        layout["yaxis"]["range"] = [0, 1.15 * max(limit, *shown)]
    add_markers(layout, [Marker(epoch_ms(one.time), one.label) for one in data.launches], theme)
    note = f"Phase: {PHASE_TITLES[phase]}. Thin: noise floor, 95 % of neighbouring windows." if phase else ""
    return finish({"data": traces, "layout": layout}, words, data.is_demo, theme, note=note)


def _is_of(floor: NoiseFloor, slot: int, phase: str | None, statistic: str) -> bool:
    return (floor.slot, floor.phase, floor.statistic) == (slot, phase, statistic)


def _line(own: Sequence[DriftPoint], slot: int, statistic: str, theme: Theme) -> dict[str, Any]:
    """Return one line, broken where another launch begins."""
    colour = slot_colours(theme)[slot % len(DASHES)]
    x: list[float] = []
    y: list[float | None] = []
    hover: list[str] = []
    launch: int | None = own[0].launch_id if own else None
    for point in own:
        if point.launch_id != launch and x:
            x, y, hover = [*x, x[-1]], [*y, None], [*hover, ""]
        launch = point.launch_id
        x.append(epoch_ms(point.time))
        y.append(getattr(point, statistic))
        hover.append(f"{point.rows:,} rows of {point.requests:,} requests")
    return {
        "type": "scatter", "mode": "lines+markers", "name": f"slot {slot}", "x": times(x), "y": floats(y),
        "connectgaps": False, "marker": {"size": 5, "color": colour}, "text": hover,
        "line": {"color": colour, "width": 1.8, "dash": DASHES[slot % len(DASHES)]},
        "hovertemplate": "%{y:.3f} (%{text})",
    }  # fmt: skip


def _floor(data: DriftTrend, slot: int, value: float, theme: Theme) -> dict[str, Any]:
    colour = slot_colours(theme)[slot % len(DASHES)]
    return {
        "type": "scatter", "mode": "lines", "name": f"slot {slot}, noise floor", "x": [data.from_, data.to],
        "y": floats([value, value]), "line": {"color": colour, "width": 1, "dash": "dot"}, "opacity": 0.6,
        "showlegend": False, "hovertemplate": "%{y:.3f}",
    }  # fmt: skip


def _add_limit(layout: dict[str, Any], limit: float, theme: Theme) -> None:
    layout["shapes"].append({
        "type": "line", "xref": "paper", "yref": "y", "x0": 0, "x1": 1, "y0": limit, "y1": limit,
        "line": {"color": theme.bad, "width": 1, "dash": "dash"},
    })  # fmt: skip
    layout["annotations"].append({
        "xref": "paper", "yref": "y", "x": 1, "y": limit, "xanchor": "right", "yanchor": "bottom",
        "text": f"gross limit {limit:g}", "showarrow": False, "font": {"size": 11, "color": theme.bad},
    })  # fmt: skip


def joint_figure(data: DriftTrend, theme: Theme) -> Figure:
    """Acceptance against how much nearer another boundary is than the trained one."""
    phase = main_phase((point.phase, point.rows) for point in data.points)
    points = _worst([point for point in data.points if point.phase == phase])
    layout = plain_layout(theme)
    wide = max((point.claimed_excess or 0.0 for point in points), default=0.0)
    end = max(1.05 * wide, 0.02)
    layout["xaxis"].update(
        title={"text": "1 − cos: trained less nearest", "standoff": 4}, range=[-0.05 * end, end]
    )
    layout["yaxis"].update(title={"text": "τ", "standoff": 8})
    top = max((point.accept_length or 1.0 for point in points), default=2.0)
    layout["yaxis"]["range"] = [1, max(1.1 * top, 1.5)]
    groups = (
        ("as trained", "circle", theme.accepted, False), ("a rule speaks", "x", theme.bad, True)
    )  # fmt: skip
    traces = []
    for name, symbol, colour, is_fault in groups:
        own = [point for point in points if (point.fault != Fault.NONE) is is_fault]
        if own:
            traces.append(_cloud(own, name, symbol, colour, data))
    note = f"Phase: {PHASE_TITLES[phase]}." if phase else ""
    words = replace(JOINT)
    figure = {"data": traces, "layout": layout}
    return finish(figure, words, data.is_demo, theme, note=note, along="excess")


def _worst(points: Sequence[DriftPoint]) -> list[DriftPoint]:
    """Return of each window the slot that is worst, where both numbers are known."""
    found: dict[tuple[int | None, str], DriftPoint] = {}
    for point in points:
        if point.accept_length is None or point.claimed_excess is None:
            continue
        key = (point.launch_id, point.time)
        other = found.get(key)
        if other is None or (point.claimed_excess, point.fault != Fault.NONE) > (
            other.claimed_excess or 0.0, other.fault != Fault.NONE,
        ):  # fmt: skip
            found[key] = point
    return list(found.values())


def _cloud(
    own: Sequence[DriftPoint], name: str, symbol: str, colour: str, data: DriftTrend
) -> dict[str, Any]:
    launches = {one.launch_id: one.label for one in data.launches}
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": [point.claimed_excess for point in own],
        "y": floats(point.accept_length for point in own),
        "marker": {"color": colour, "symbol": symbol, "size": 8, "opacity": 0.75},
        "text": [
            f"slot {point.slot}, {point.rows:,} rows of {point.requests:,} requests, "
            f"{label(launches.get(point.launch_id or -1, f'launch {point.launch_id}'))}<br>{point.time}"
            for point in own
        ],
        "hovertemplate": "%{x:.3f} farther, τ %{y:.2f}<br>%{text}<extra>%{fullData.name}</extra>",
    }  # fmt: skip
