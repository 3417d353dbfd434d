"""Charts of the sources' health over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specscope_server.kit.figures import (
    Figure,
    Words,
    add_watermark,
    describe,
    label,
    line_trace,
    time_layout,
    times,
)
from specscope_server.kit.figures_theme import Theme

SOURCE_UP = Words(
    name="source-up",
    title="Share of good reads",
    question="Could each source be read?",
    definition="Reads that were understood / attempts, in each interval; a gap: none was attempted.",
    unit="share",
)
SOURCE_DURATION = Words(
    name="source-duration",
    title="Time of a read",
    question="How long does an answer take?",
    definition="Longest attempt in each interval, failed ones included.",
    unit="ms",
)
WORDS = (SOURCE_UP, SOURCE_DURATION)
_DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True, slots=True)
class SourceHistory:
    """One value per bucket and source; None where nothing was attempted. Times: bucket starts, epoch ms."""

    times_ms: Sequence[int]
    step_ms: int
    to_ms: int
    values: Mapping[str, Sequence[float | None]]
    is_demo: bool


def source_up_figure(history: SourceHistory, theme: Theme) -> Figure:
    """Share of attempts that were good, per source, from 0 to 1."""
    figure = _lines(history, theme)
    figure["layout"]["yaxis"].update(
        title={"text": "share of attempts"},
        range=[0, 1.04],
        tickformat=".0%",
        hoverformat=".0%",
        tick0=0,
        dtick=0.25,
    )
    describe(figure, SOURCE_UP, history.is_demo)
    return figure


def source_duration_figure(history: SourceHistory, theme: Theme) -> Figure:
    """Longest attempt per bucket and source, in ms (the history holds seconds), y from 0."""
    values = {
        name: [None if value is None else value * 1000 for value in series]
        for name, series in history.values.items()
    }
    figure = _lines(
        SourceHistory(history.times_ms, history.step_ms, history.to_ms, values, history.is_demo), theme
    )
    figure["layout"]["yaxis"].update(title={"text": "ms"}, rangemode="tozero", hoverformat=",.0f")
    describe(figure, SOURCE_DURATION, history.is_demo)
    return figure


def _lines(history: SourceHistory, theme: Theme) -> Figure:
    colors = (theme.draft, theme.verify, theme.draft_extend, theme.rejected)
    x = times(time + history.step_ms / 2 for time in history.times_ms)
    layout = time_layout(theme, history.times_ms[0], history.to_ms)
    data = [
        line_trace(label(name), x, series, colors[index % 4], line={"dash": _DASHES[index % 4]})
        for index, (name, series) in enumerate(sorted(history.values.items()))
    ]
    if history.is_demo:
        add_watermark(layout, theme)
    return {"data": data, "layout": layout}
