"""Parts that all figures share. A figure is a plain dict in plotly's JSON form.

Plain dicts with typed arrays are an order of magnitude faster to build and encode than plotly's own objects;
tests validate every figure against plotly's schema instead.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np

from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.timeparse import to_iso

Figure: TypeAlias = dict[str, Any]
"""``{"data": [trace, …], "layout": {…}}`` as plotly.js takes it."""

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
MAX_LABEL_CHARACTERS = 60
CHARACTERS_ACROSS = 130
"""Characters of a marker's label that an exported figure has room for."""
MARK = "▾"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of time, in epoch milliseconds, that is shaded and named."""

    from_ms: float
    to_ms: float


@dataclass(frozen=True, slots=True)
class Marker:
    """An instant with a short name, e.g. a launch. ``label`` is untrusted."""

    time_ms: float
    label: str


@dataclass(frozen=True, slots=True)
class Words:
    """What a figure says about itself, in plain text. ``name`` is its name in URLs."""

    name: str
    title: str
    question: str
    """The one sentence above the chart: what it answers."""
    definition: str
    unit: str


def epoch_ms(iso: str) -> float:
    """Return epoch milliseconds of an ISO 8601 time; one without an offset is UTC."""
    moment = datetime.fromisoformat(iso)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000


def label(text: str, limit: int = MAX_LABEL_CHARACTERS) -> str:
    """Return untrusted text as plotly may draw it: shortened, no control or direction marks, escaped.

    plotly reads a small subset of HTML (``<a href>``, ``<b>``, entities) in every text it draws.
    """
    plain = _CONTROL.sub(" ", text).strip()
    if len(plain) > limit:
        plain = plain[: limit - 1] + "…"
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def times(values_ms: Iterable[float]) -> list[str]:
    """Return times as ISO 8601 in UTC: plotly would show a number in the time zone of the browser."""
    return [to_iso(round(value)) for value in values_ms]


def floats(values: Iterable[float | None]) -> dict[str, str]:
    """Return numbers as plotly's typed array (base64 of little-endian float64); None becomes NaN, a gap."""
    array = np.array([np.nan if value is None else value for value in values], dtype="<f8")
    return {"dtype": "f8", "bdata": base64.b64encode(array.tobytes()).decode("ascii")}


def decode_floats(typed: dict[str, str]) -> list[float]:
    """Return the numbers of a typed array made by `floats` (NaN for gaps)."""
    return [float(value) for value in np.frombuffer(base64.b64decode(typed["bdata"]), dtype="<f8")]


def line_trace(
    name: str, x: list[str], values: Sequence[float | None], color: str, **more: Any
) -> dict[str, Any]:
    """Return a line that breaks at gaps; a lone point between two gaps still shows, as a dot."""
    line = {"color": color, "width": 1.8, **more.pop("line", {})}
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if _has_lone_point(values) else "lines",
        "name": name,
        "x": x,
        "y": floats(values),
        "connectgaps": False,
        "line": line,
        "marker": {
            "size": [5 if lone else 0 for lone in _lone_points(values)] if _has_lone_point(values) else 5,
            "color": color,
        },
    }
    trace.update(more)
    return trace


def _lone_points(values: Sequence[float | None]) -> list[bool]:
    padded = [None, *values, None]
    return [
        padded[i - 1] is None and padded[i] is not None and padded[i + 1] is None
        for i in range(1, len(padded) - 1)
    ]


def _has_lone_point(values: Sequence[float | None]) -> bool:
    return any(_lone_points(values))


def time_layout(theme: Theme, from_ms: float, to_ms: float) -> dict[str, Any]:
    """Return the layout that every time chart shares: one time axis in UTC, hairline grid, legend below."""
    return {
        "font": {"family": FONT, "size": 12, "color": theme.ink_soft},
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "margin": {"l": 52, "r": 16, "t": 28, "b": 66},
        "height": 260,
        "autosize": True,
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": theme.paper, "bordercolor": theme.line, "font": {"color": theme.ink}},
        "showlegend": True,
        "legend": _LEGEND,
        "dragmode": "zoom",
        "xaxis": {
            "type": "date",
            "range": times([from_ms, to_ms]),
            "gridcolor": theme.line,
            "linecolor": theme.line,
            "zeroline": False,
            "nticks": 7,
            "hoverformat": "%Y-%m-%d %H:%M:%S UTC",
            "tickformatstops": _TICK_FORMATS,
        },
        "yaxis": {
            "gridcolor": theme.line,
            "linecolor": theme.line,
            "zeroline": False,
            "fixedrange": True,
            "nticks": 6,
        },
        "shapes": [],
        "annotations": [],
    }


_LEGEND = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "yref": "container",
    "y": 0,
    "yanchor": "bottom",
    "bgcolor": "rgba(0,0,0,0)",
    "itemclick": False,
    "itemdoubleclick": False,
}
_TICK_FORMATS = [
    {"dtickrange": [None, 59_999], "value": "%H:%M:%S\n%-d %b"},
    {"dtickrange": [60_000, 86_399_999], "value": "%H:%M\n%-d %b"},
    {"dtickrange": [86_400_000, None], "value": "%-d %b\n%Y"},
]


def describe(figure: Figure, words: Words, is_demo: bool) -> None:
    """Put the words of a figure into ``layout.meta`` (plain, for pages) and its title (for exports)."""
    layout = figure["layout"]
    layout["meta"] = {**asdict(words), "is_demo": is_demo}
    subtitle = f"{words.question} {words.definition}".strip()
    layout["title"] = {
        "text": label(words.title),
        "x": 0.01,
        "xanchor": "left",
        "subtitle": {"text": label(subtitle, 240)},
    }


def add_bands(layout: dict[str, Any], bands: Sequence[Band], name: str, theme: Theme) -> None:
    """Shade stretches of time behind the data; wide ones carry the name, all share one legend entry."""
    low, high = (epoch_ms(end) for end in layout["xaxis"]["range"])
    for index, band in enumerate(bands):
        wide = (band.to_ms - band.from_ms) > 0.07 * (high - low)
        shape: dict[str, Any] = {
            "type": "rect", "layer": "below", "xref": "x", "yref": "paper",
            "x0": to_iso(round(band.from_ms)), "x1": to_iso(round(band.to_ms)), "y0": 0, "y1": 1,
            "fillcolor": theme.idle, "opacity": 0.5, "line": {"width": 0},
            "name": name, "legendgroup": name, "showlegend": index == 0,
        }  # fmt: skip
        if wide:
            shape["label"] = {
                "text": name,
                "textposition": "bottom center",
                "font": {"size": 11, "color": theme.ink},
            }
        layout["shapes"].append(shape)


def add_markers(layout: dict[str, Any], markers: Sequence[Marker], theme: Theme) -> None:
    """Draw a vertical line per marker, and its label above the plot where there is room before the next."""
    low, high = (epoch_ms(end) for end in layout["xaxis"]["range"])
    shown = [marker for marker in markers if low <= marker.time_ms <= high]
    edges = [*(marker.time_ms for marker in shown), high]
    for index, marker in enumerate(shown):
        moment = to_iso(round(marker.time_ms))
        layout["shapes"].append({
            "type": "line", "xref": "x", "yref": "paper",
            "x0": moment, "x1": moment, "y0": 0, "y1": 1,
            "line": {"color": theme.ink_soft, "width": 1, "dash": "dot"}, "layer": "above",
        })  # fmt: skip
        layout["annotations"].append(
            _marker_label(marker, (edges[index + 1] - marker.time_ms) / (high - low), theme)
        )


def _marker_label(marker: Marker, room: float, theme: Theme) -> dict[str, Any]:
    """``room`` is the share of the width up to the next marker; what does not fit is cut, or only a mark.

    Pages decide anew with their real width, so the whole label stands in ``hovertext``.
    """
    text = label(marker.label)
    space = room * CHARACTERS_ACROSS
    shown = next(
        (one for one in _shorter(marker.label) if min(len(one), MAX_LABEL_CHARACTERS) <= space), None
    )
    return {
        "xref": "x", "yref": "paper", "x": to_iso(round(marker.time_ms)), "y": 1, "yanchor": "bottom",
        "xanchor": "left" if shown else "center", "text": label(shown) if shown else MARK, "hovertext": text,
        "showarrow": False, "name": "marker", "font": {"size": 11, "color": theme.ink_soft},
    }  # fmt: skip


def _shorter(text: str) -> tuple[str, ...]:
    """ "K=5 D=6 · 0.5.8" can be cut to "K=5 D=6" and to "K=5"."""
    settings = text.partition(" · ")[0]
    return (text, settings, *re.findall(r"^K=\d+", settings))


def add_watermark(layout: dict[str, Any], theme: Theme) -> None:
    """Write "demo" across the plot: simulated data is labelled wherever it appears."""
    layout["annotations"].append({
        "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "text": "demo", "showarrow": False,
        "font": {"size": 56, "color": theme.ink_soft}, "opacity": 0.16, "name": "watermark",
    })  # fmt: skip
