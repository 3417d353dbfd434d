"""Charts of where the time goes, as plain plotly dicts. Unattributed time is always a grey hatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from specscope_server.kit.figures_theme import Theme
from specscope_server.timing.colours import bar_marker, colour
from specscope_server.timing.phases import TITLES, Phase
from specscope_server.timing.schemas import Level, PhaseRow, PhaseTime, TimingSummary, TimingTrend

WATERFALL = Words(
    name="time-waterfall",
    title="One cycle, part by part",
    question="What does a cycle's wall time consist of?",
    definition="Mean milliseconds of each part; each begins where the one before ends, and together they are "
    "the active wall time per cycle.",
    unit="ms",
)
SHARES = Words(
    name="time-shares",
    title="Share of wall time",
    question="Where did the schedulers' time go?",
    definition="Σ seconds of each phase / observed seconds; what no source explains is hatched.",
    unit="share",
)
PER_CYCLE = Words(
    name="time-per-cycle",
    title="Time per cycle",
    question="Did a cycle become slower, and which part of it?",
    definition="Σ seconds of each part / Σ cycles in each interval; idle and warm-up are left out.",
    unit="ms",
)
SENSITIVITY = Words(
    name="time-sensitivity",
    title="What one change would give",
    question="What would a millisecond, or a point of acceptance, be worth?",
    definition="Extrapolated, hence hatched: each cycle 1 ms shorter (of a part below 2 ms, half of it), or "
    "every αₖ one point higher; all else stays.",
    unit="tokens/s",
)
EVIDENCE_WORDS = {
    Level.PROBE: "Measured by the probe.",
    Level.DEVICE_TIMER: "Measured by the engine's device timer.",
    Level.GAUGES: "From rates only: what a cycle is made of is not known.",
    Level.NONE: "",
}
TOTAL = "active time"


def waterfall_figure(data: TimingSummary, theme: Theme) -> Figure:
    """Parts of one cycle, each beginning where the one before ends, and the whole beside them."""
    rows = waterfall_rows(data)
    layout = named_layout(theme)
    traces, start = [], 0.0
    for row in rows:
        length = row.ms_per_cycle or 0.0
        traces.append(_step(row, start, length, theme))
        start += length
    if rows:
        traces.append(_total(start, theme))
    layout["yaxis"].update(title={"text": "ms", "standoff": 8}, rangemode="tozero", ticksuffix="")
    layout.update(showlegend=False, barmode="overlay")
    words = replace(WATERFALL, definition=f"{WATERFALL.definition} {EVIDENCE_WORDS[data.evidence]}".strip())
    return finish({"data": traces, "layout": layout}, words, data.is_demo, theme, "part")


def waterfall_rows(data: TimingSummary) -> list[PhaseRow]:
    """Return the parts whose sum is the active wall time per cycle: those of cycles, and prefill with what
    lies around it as one. Idle and warm-up are no part of it.
    """
    rest = (Phase.IDLE, Phase.WARM_UP)
    rows = [row for row in data.phases if row.ms_per_cycle and row.phase not in rest]
    inside = [row for row in rows if row.is_in_cycle]
    beside = [row for row in rows if not row.is_in_cycle]
    if not beside:
        return inside
    main = max(beside, key=lambda row: row.ms_per_cycle or 0.0)
    whole = sum(row.ms_per_cycle or 0.0 for row in beside)
    return [*inside, main.model_copy(update={"ms_per_cycle": whole})]


def _step(row: PhaseRow, start: float, length: float, theme: Theme) -> dict[str, Any]:
    share = "" if row.share_of_cycle is None else f", {100 * row.share_of_cycle:.1f} % of the cycle"
    interval = "" if row.low is None or row.high is None else f" ({row.low:.2f} … {row.high:.2f})"
    hover = f"{row.title}: {length:.2f} ms{interval}{share}<extra></extra>"
    return {**_bar(row.title, start, length, theme, hover), "marker": bar_marker(row.phase, theme)}


def _total(length: float, theme: Theme) -> dict[str, Any]:
    hover = f"active wall time per cycle: {length:.2f} ms<extra></extra>"
    outline = {"color": theme.paper, "line": {"color": theme.ink_soft, "width": 1}}
    return {**_bar(TOTAL, 0.0, length, theme, hover), "marker": outline}


def _bar(name: str, start: float, length: float, theme: Theme, hover: str) -> dict[str, Any]:
    return {
        "type": "bar", "name": name, "x": [name], "y": floats([length]), "base": [start],
        "text": [f"{length:.2f}"], "textposition": "outside", "cliponaxis": False,
        "textfont": {"color": theme.ink_soft}, "hovertemplate": hover,
    }  # fmt: skip


def shares_figure(data: TimingTrend, theme: Theme) -> Figure:
    """Stacked shares of wall time; together 1, gaps stay gaps."""
    figure = _stacked(data, "share_of_wall", theme, (), "%{y:.1%}")
    figure["layout"]["yaxis"].update(
        title={"text": "share of wall time", "standoff": 8}, range=[0, 1.02], tick0=0, dtick=0.2,
        tickformat=".0%",
    )  # fmt: skip
    words = replace(SHARES, definition=f"{SHARES.definition} {EVIDENCE_WORDS[data.evidence]}".strip())
    return finish(figure, words, data.is_demo, theme)


def per_cycle_figure(data: TimingTrend, theme: Theme) -> Figure:
    """Stacked milliseconds per cycle; y from 0."""
    figure = _stacked(data, "ms_per_cycle", theme, (Phase.IDLE, Phase.WARM_UP), "%{y:.2f} ms")
    figure["layout"]["yaxis"].update(title={"text": "ms per cycle", "standoff": 8}, rangemode="tozero")
    words = replace(PER_CYCLE, definition=f"{PER_CYCLE.definition} {EVIDENCE_WORDS[data.evidence]}".strip())
    return finish(figure, words, data.is_demo, theme)


def _stacked(data: TimingTrend, value: str, theme: Theme, without: tuple[Phase, ...], hover: str) -> Figure:
    layout = time_layout(theme, epoch_ms(data.from_), epoch_ms(data.to))
    width_ms = 1_000 * data.step_seconds
    traces = [
        _bars(phase, [point for point in data.points if point.phase == phase], value, width_ms, theme, hover)
        for phase in data.phases
        if phase not in without
    ]
    layout.update(barmode="stack", bargap=0)
    markers = [Marker(epoch_ms(launch.time), launch.label) for launch in data.launches]
    add_markers(layout, markers, theme)
    return {"data": traces, "layout": layout}


def _bars(
    phase: str, points: Sequence[PhaseTime], value: str, width_ms: float, theme: Theme, hover: str
) -> dict[str, Any]:
    return {
        "type": "bar", "name": TITLES[Phase(phase)],
        "x": times(epoch_ms(point.time) + width_ms / 2 for point in points),
        "y": floats(getattr(point, value) for point in points),
        "width": width_ms, "marker": bar_marker(phase, theme), "hovertemplate": hover,
    }  # fmt: skip


def sensitivity_figure(data: TimingSummary, theme: Theme) -> Figure:
    """A hatched bar for each change, the largest first."""
    rows = sorted(
        (row for row in data.sensitivity if row.tokens_per_second is not None),
        key=lambda row: -(row.tokens_per_second or 0.0),
    )
    layout = named_layout(theme)
    colours = [theme.accepted if row.name == "alpha" else colour(row.name, theme) for row in rows]
    bars = {
        "type": "bar", "name": "gain in tokens/s", "x": [row.title for row in rows],
        "y": floats(row.tokens_per_second for row in rows),
        "marker": {
            "color": colours, "line": {"color": colours, "width": 1},
            "pattern": {
                "shape": "/", "fgcolor": colours, "bgcolor": theme.paper, "fillmode": "replace", "size": 6,
            },
        },
        "text": [f"+{row.tokens_per_second:.1f}" for row in rows], "textposition": "outside",
        "cliponaxis": False, "textfont": {"color": theme.ink_soft},
        "customdata": [f"{row.change}: {100 * (row.relative or 0):+.1f} %{_most(row.most)}" for row in rows],
        "hovertemplate": "%{x}, %{customdata}<extra></extra>",
    }  # fmt: skip
    layout["yaxis"].update(title={"text": "more tokens/s", "standoff": 8}, rangemode="tozero")
    layout.update(showlegend=False)
    figure: Figure = {"data": [bars] if rows else [], "layout": layout}
    return finish(figure, SENSITIVITY, data.is_demo, theme, "change")


def _most(value: float | None) -> str:
    return "" if value is None else f"; at most +{100 * value:.0f} %"


def named_layout(theme: Theme) -> dict[str, Any]:
    """Return a layout with names along x instead of time; every name is shown."""
    layout = time_layout(theme, 0, 1)
    kept = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor", "zeroline")}
    layout["xaxis"] = {**kept, "type": "category", "tickmode": "linear", "dtick": 1, "fixedrange": True,
                       "automargin": True}  # fmt: skip
    layout.update(dragmode=False, hovermode="closest")
    return layout


def finish(figure: Figure, words: Words, is_demo: bool, theme: Theme, along: str = "") -> Figure:
    """Put the words on a figure; ``along`` names what runs along x where that is not time."""
    if is_demo:
        add_watermark(figure["layout"], theme)
    describe(figure, words, is_demo)
    if along:
        figure["layout"]["meta"]["x"] = along
    return figure
