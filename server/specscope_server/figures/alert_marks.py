"""Draw when alerts fired into any figure over time: a strip along the top, and a mark at each beginning."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_server.kit.figures import Figure, epoch_ms, label
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.timeparse import to_iso
from specscope_server.store.alert_spans import AlertSpan

STRIP = 0.025
"""Height, as a share of the plot."""
NEAR = 0.015
"""Beginnings nearer to each other than this share of the width are one mark."""
MAX_TOLD = 6
"""Alerts that the text of one mark names."""
LEGEND = "alert fires"
RANKS = ("info", "warning", "critical")


def add_alerts(figure: Figure, spans: Sequence[AlertSpan], theme: Theme) -> None:
    """Add the fires to a figure whose x axis is time; others are left as they are."""
    layout = figure["layout"]
    if not spans or not has_time(figure):
        return
    low, high = (epoch_ms(end) for end in layout["xaxis"]["range"])
    seen = [each for each in spans if each.from_ms < high and (each.to_ms is None or each.to_ms > low)]
    if not seen or high <= low:
        return
    for severity in RANKS:  # the worst is drawn last, so that it lies on top
        for from_ms, to_ms in _merged([each for each in seen if each.severity == severity], low, high):
            layout["shapes"].append(_strip(from_ms, to_ms, _colour(severity, theme)))
    starts = [each for each in seen if each.from_ms >= low]
    for group in _near(starts, NEAR * (high - low)):
        layout["annotations"].append(_mark(group, theme))


def has_time(figure: Figure) -> bool:
    """Tell whether the x axis is a stretch of time."""
    axis = figure["layout"].get("xaxis", {})
    return axis.get("type") == "date" and len(axis.get("range") or ()) == 2


def _merged(spans: Sequence[AlertSpan], low: float, high: float) -> list[tuple[float, float]]:
    """Return the stretches in which at least one fires, cut to the axis."""
    ends: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda each: each.from_ms):
        from_ms, to_ms = max(span.from_ms, low), min(high if span.to_ms is None else span.to_ms, high)
        if ends and from_ms <= ends[-1][1]:
            ends[-1] = (ends[-1][0], max(ends[-1][1], to_ms))
        else:
            ends.append((from_ms, to_ms))
    return ends


def _near(spans: Sequence[AlertSpan], distance_ms: float) -> list[list[AlertSpan]]:
    groups: list[list[AlertSpan]] = []
    for span in sorted(spans, key=lambda each: each.from_ms):
        if groups and span.from_ms - groups[-1][0].from_ms < distance_ms:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _strip(from_ms: float, to_ms: float, colour: str) -> dict[str, object]:
    return {
        "type": "rect", "layer": "above", "xref": "x", "yref": "paper", "name": "alert",
        "x0": to_iso(round(from_ms)), "x1": to_iso(round(to_ms)), "y0": 1 - STRIP, "y1": 1,
        "fillcolor": colour, "opacity": 0.85, "line": {"width": 0},
    }  # fmt: skip


def _mark(group: Sequence[AlertSpan], theme: Theme) -> dict[str, object]:
    """The text names what began there; the shape says that it is an alert, the colour only how bad."""
    worst = max((each.severity for each in group), key=_rank)
    return {
        "xref": "x", "yref": "paper", "x": to_iso(round(group[0].from_ms)), "y": 1 - STRIP,
        "yanchor": "top", "xanchor": "center", "showarrow": False, "name": "alert",
        "text": "▲" if len(group) == 1 else f"▲{len(group)}",
        "hovertext": "<br>".join(_lines(group)), "font": {"size": 11, "color": _colour(worst, theme)},
    }  # fmt: skip


def _lines(group: Sequence[AlertSpan]) -> list[str]:
    lines = [
        f"{label(each.severity)} alert: {label(each.rule)}"
        + "".join(
            f" {label(name, 20)}={label(value, 30)}"
            for name, value in each.labels.items()
            if name != "server"
        )
        for each in group[:MAX_TOLD]
    ]
    return [*lines, f"and {len(group) - MAX_TOLD} more"] if len(group) > MAX_TOLD else lines


def _rank(severity: str) -> int:
    return RANKS.index(severity) if severity in RANKS else 0


def _colour(severity: str, theme: Theme) -> str:
    return {"critical": theme.bad, "warning": theme.warn}.get(severity, theme.ink_soft)
