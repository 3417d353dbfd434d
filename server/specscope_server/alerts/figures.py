"""When alerts fired: a line for each rule and label set, thick while it fires."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_server.kit.figures import (
    Figure,
    Words,
    add_watermark,
    describe,
    floats,
    label,
    time_layout,
    times,
)
from specscope_server.kit.figures_theme import Theme
from specscope_server.store.alert_spans import AlertSpan

TIMELINE = Words(
    name="alert-timeline",
    title="When alerts fired",
    question="What fired when, and for how long?",
    definition="From the fire to its end; the longest-lasting at the top, at most 20.",
    unit="",
)
MAX_ROWS = 20
MARKS = {"critical": "octagon", "warning": "triangle-up", "info": "circle"}


def timeline_figure(
    spans: Sequence[AlertSpan], from_ms: int, to_ms: int, theme: Theme, *, is_demo: bool
) -> Figure:
    """Return the fires by rule and labels; y is the number of the row, from the bottom."""
    rows = _rows(spans, from_ms, to_ms)
    layout = time_layout(theme, from_ms, to_ms)
    layout["showlegend"] = False
    layout["hovermode"] = "closest"
    layout["yaxis"].update(
        tickmode="array", tickvals=list(range(len(rows))), ticktext=[label(name, 36) for name, _ in rows],
        range=[-0.6, max(len(rows), 1) - 0.4], automargin=True,
    )  # fmt: skip
    data = [_trace(name, place, fires, from_ms, to_ms, theme) for place, (name, fires) in enumerate(rows)]
    figure = {"data": data, "layout": layout}
    describe(figure, TIMELINE, is_demo)
    if is_demo:
        add_watermark(layout, theme)
    return figure


def row_name(span: AlertSpan) -> str:
    """Return the rule, and the labels that tell its alerts of one server apart."""
    more = [f"{name}={value}" for name, value in sorted(span.labels.items()) if name != "server"]
    return " ".join([span.rule, *more])


def _rows(
    spans: Sequence[AlertSpan], from_ms: int, to_ms: int
) -> list[tuple[str, list[AlertSpan]]]:  # fmt: skip
    """Return (name, fires) of each row, from the bottom: the one that fired longest comes last."""
    rows: dict[str, list[AlertSpan]] = {}
    for span in spans:
        rows.setdefault(row_name(span), []).append(span)

    def lasted(fires: Sequence[AlertSpan]) -> int:
        return sum(min(each.to_ms or to_ms, to_ms) - max(each.from_ms, from_ms) for each in fires)

    return sorted(rows.items(), key=lambda row: (lasted(row[1]), row[0]))[-MAX_ROWS:]


def _trace(
    name: str, place: int, fires: Sequence[AlertSpan], from_ms: int, to_ms: int, theme: Theme
) -> dict[str, object]:
    ends = [(max(each.from_ms, from_ms), min(each.to_ms or to_ms, to_ms)) for each in fires]
    moments = [moment for first, last in ends for moment in (first, last, last)]
    severity = fires[-1].severity
    colour = {"critical": theme.bad, "warning": theme.warn}.get(severity, theme.ink_soft)
    return {
        "type": "scatter", "mode": "lines+markers", "name": label(name), "x": times(moments),
        "y": floats(value for _ in ends for value in (place, place, None)), "connectgaps": False,
        "line": {"color": colour, "width": 8},
        "marker": {"symbol": MARKS.get(severity, "circle"), "size": 10, "color": colour},
        "hovertemplate": f"{label(name)} ({label(severity)})<br>%{{x|%Y-%m-%d %H:%M:%S}} UTC<extra></extra>",
    }  # fmt: skip
