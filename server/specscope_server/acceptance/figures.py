"""Charts of acceptance over time, as plain plotly dicts built from an `AcceptanceTrend`.

Gaps stay gaps; idle stretches are shaded instead of being drawn as a flat line (the engine's gauges freeze
when it idles); rates start at 0; the accept length axis runs from 1 (nothing accepted) to K + 1 (all of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from specscope_server.acceptance.schemas import (
    AcceptanceTrend,
    ActivityState,
    Evidence,
    RateDefinition,
    TrendPoint,
)
from specscope_server.kit.figures import (
    Band,
    Figure,
    Marker,
    Words,
    add_bands,
    add_markers,
    add_watermark,
    describe,
    epoch_ms,
    label,
    line_trace,
    time_layout,
    times,
)
from specscope_server.kit.figures_theme import Theme

DEFAULT_DEPTH = 5
"""Top of the accept length axis is K + 1; this K is assumed while no launch has said its own."""

RATE_WORDS = {
    "τ/D": "includes the bonus token, so that its floor is 1/D, not 0",
    "(τ−1)/(D−1)": "drafts only, without the bonus token",
    "accepted / proposed": "drafts only, without the bonus token",
}
"""Formula of a printed rate → what to know about it."""
RATE_DASHES = ("solid", "dash", "dashdot", "longdash")
"""One line style per definition; dots are the floor's."""

ACCEPT_LENGTH = Words(
    name="accept-length",
    title="Accept length τ",
    question="How many tokens does one speculative cycle emit?",
    definition="τ = 1 + mean accepted drafts; 1 means that no draft is accepted, K + 1 that every one is.",
    unit="tokens per cycle",
)
DRAFT_ACCEPTANCE = Words(
    name="draft-acceptance",
    title="Draft acceptance (strict)",
    question="Which share of the proposed drafts is kept?",
    definition="Σ accepted drafts / Σ proposed drafts, without the bonus token.",
    unit="share",
)
ENGINE_RATE = Words(
    name="engine-rate",
    title="Engine-reported rate",
    question="What did the engine itself print?",
    definition="",
    unit="share",
)
THROUGHPUT = Words(
    name="throughput",
    title="Generated tokens",
    question="How fast does the server produce text?",
    definition="Output tokens of all requests per second of observed time.",
    unit="tokens/s",
)
LOAD = Words(
    name="load",
    title="Running and queued requests",
    question="How busy was the server?",
    definition="Mean number of requests in each interval, all ranks together.",
    unit="requests",
)


EVIDENCE_WORDS = {
    Evidence.DRAFT_COUNTERS: "from counted drafts",
    Evidence.REQUEST_HISTOGRAMS: "from finished requests",
    Evidence.COUNTERS: "from counters",
    Evidence.GAUGES: "from the engine's window means",
    Evidence.NONE: "",
}
"""What a point was computed from; points of several kinds may share a line, so each says its own."""


def acceptance_trend_figure(trend: AcceptanceTrend, theme: Theme) -> Figure:
    """Accept length τ in tokens per cycle, bonus token included; axis from 1 to the ceiling K + 1.

    The hover text of a point names its evidence; the words above say so if the line mixes several kinds.
    """
    x, figure = _start(trend, theme)
    kinds = [EVIDENCE_WORDS[point.evidence] for point in trend.points]
    depths = [point.num_steps for point in trend.points]
    ceiling = [None if depth is None else depth + 1 for depth in depths]
    figure["data"] = [
        line_trace(
            "accept length τ",
            x,
            _active(trend, "accept_length"),
            theme.accepted,
            text=kinds,
            hovertemplate="%{y:.2f} %{text}",
        ),
        _limit("ceiling K + 1", x, ceiling, theme),
    ]
    top = max((value for value in ceiling if value is not None), default=DEFAULT_DEPTH + 1)
    _axis(
        figure,
        "tokens per cycle",
        [1, top + 0.04 * (top - 1)],
        ".2f",
        tickformat="d",
        every=_tick_distance(top),
    )
    words = replace(ACCEPT_LENGTH, definition=f"{ACCEPT_LENGTH.definition}{_mixed_evidence(trend)}")
    return _finish(figure, trend, theme, words)


def _mixed_evidence(trend: AcceptanceTrend) -> str:
    """Return a sentence that names the kinds of evidence on one line; empty for one kind."""
    used = {point.evidence for point in trend.points if point.accept_length is not None}
    words = [text for kind, text in EVIDENCE_WORDS.items() if kind in used and text]
    return f" Points are {' or '.join(words)}: hover says which." if len(words) > 1 else ""


def strict_acceptance_figure(trend: AcceptanceTrend, theme: Theme) -> Figure:
    """Strict draft acceptance, Σ accepted / Σ proposed drafts without the bonus token, from 0 to 1."""
    x, figure = _start(trend, theme)
    figure["data"] = [line_trace("draft acceptance", x, _active(trend, "draft_acceptance"), theme.accepted)]
    _axis(figure, "share of proposed drafts", [0, 1.04], ".1%", tickformat=".0%", every=0.2)
    return _finish(figure, trend, theme, DRAFT_ACCEPTANCE)


def engine_rate_figure(trend: AcceptanceTrend, theme: Theme) -> Figure:
    """The rate as the engine printed it: a line per definition (formula and version), each with its words.

    Beside a rate τ/D its floor 1/D is drawn, where that rate was printed.
    """
    x, figure = _start(trend, theme)
    printed = _active(trend, "engine_reported_rate")
    for index, definition in enumerate(trend.rate_definitions):
        values = [
            value if _is_of(point, definition) else None
            for point, value in zip(trend.points, printed, strict=True)
        ]
        line = {"dash": RATE_DASHES[index % len(RATE_DASHES)]}
        meta = {"definition": _definition_name(definition)}
        name = label(f"printed rate {_definition_name(definition)}", 100)
        figure["data"].append(line_trace(name, x, values, theme.host, line=line, meta=meta))
    floor = [point.engine_rate_floor for point in trend.points]
    if any(value is not None for value in floor):
        trace = _limit("floor 1/D: nothing accepted", x, floor, theme)
        figure["data"].append({**trace, "meta": {"definition": "1/D, the floor of τ/D"}})
    _axis(figure, "rate as printed", [0, 1.04], ".1%", tickformat=".0%", every=0.2)
    return _finish(figure, trend, theme, replace(ENGINE_RATE, definition=_rate_definition(trend)))


def throughput_figure(trend: AcceptanceTrend, theme: Theme) -> Figure:
    """Generated tokens per second, y from 0. Idle stretches are drawn as idle."""
    x, figure = _start(trend, theme)
    values = [point.generated_tokens_per_second for point in trend.points]
    figure["data"] = [line_trace("generated", x, values, theme.accent)]
    _axis(figure, "tokens per second", None, ",.1f")
    return _finish(figure, trend, theme, THROUGHPUT)


def load_figure(trend: AcceptanceTrend, theme: Theme) -> Figure:
    """Requests being decoded and waiting, y from 0."""
    x, figure = _start(trend, theme)
    figure["data"] = [
        line_trace("running", x, [point.requests_running for point in trend.points], theme.draft),
        line_trace(
            "queued",
            x,
            [point.requests_queued for point in trend.points],
            theme.verify,
            line={"dash": "dot"},
        ),
    ]
    _axis(figure, "requests", None, ",.1f")
    return _finish(figure, trend, theme, LOAD)


def idle_bands(points: Sequence[TrendPoint], step_seconds: float) -> list[Band]:
    """Return the stretches of adjacent idle points; a point covers the step that begins at its time."""
    bands = []
    for state, group in groupby(points, key=lambda point: point.state):
        run = list(group)
        if state == ActivityState.IDLE:
            bands.append(Band(epoch_ms(run[0].time), epoch_ms(run[-1].time) + step_seconds * 1000))
    return bands


def _start(trend: AcceptanceTrend, theme: Theme) -> tuple[list[str], Figure]:
    """Points are drawn at the middle of their step."""
    half_step_ms = trend.step_seconds * 500
    x = times(epoch_ms(point.time) + half_step_ms for point in trend.points)
    layout = time_layout(theme, epoch_ms(trend.from_), epoch_ms(trend.to))
    return x, {"data": [], "layout": layout}


def _active(trend: AcceptanceTrend, field: str) -> list[float | None]:
    """Values of a field where the engine was active; a gauge that froze while idle is not a measurement."""
    return [getattr(point, field) if point.state == ActivityState.ACTIVE else None for point in trend.points]


def _limit(name: str, x: list[str], values: Sequence[float | None], theme: Theme) -> dict[str, Any]:
    line = {"dash": "dot", "width": 1.2, "shape": "hv"}
    return line_trace(name, x, values, theme.ink_soft, line=line)


def _axis(
    figure: Figure,
    title: str,
    limits: list[float] | None,
    hoverformat: str,
    *,
    tickformat: str = "",
    every: float | None = None,
) -> None:
    axis = figure["layout"]["yaxis"]
    axis.update(title={"text": title, "standoff": 8}, hoverformat=hoverformat)
    axis.update({"range": limits} if limits else {"rangemode": "tozero"})
    if tickformat:
        axis["tickformat"] = tickformat
    if every and limits:
        axis.update(tick0=limits[0], dtick=every)


def _tick_distance(top: float) -> float:
    """Whole numbers from 1 to K + 1, at most about seven of them."""
    return max(1.0, float(round(top / 7)))


def _is_of(point: TrendPoint, definition: RateDefinition) -> bool:
    return (point.rate_formula, point.rate_engine_version) == (definition.formula, definition.engine_version)


def _definition_name(definition: RateDefinition) -> str:
    """Return the formula and who printed it, e.g. ``τ/D by SGLang 0.5.8``; untrusted."""
    formula = definition.formula if definition.formula in RATE_WORDS else "of undetermined formula"
    return f"{formula} by {definition.engine} {definition.engine_version}"


def _rate_definition(trend: AcceptanceTrend) -> str:
    """Return what the printed rates mean, the older first."""
    found = [_in_words(definition) for definition in trend.rate_definitions]
    if not found:
        return "No rate was printed in this range."
    mixed = "Definitions differ, so do not compare across them: " if len(found) > 1 else ""
    return f"{mixed}{'; then '.join(found)}."


def _in_words(definition: RateDefinition) -> str:
    extra = RATE_WORDS.get(definition.formula)
    if extra is None:
        reason = f": {definition.reason}" if definition.reason else ""
        return f"Undetermined for {definition.engine} {definition.engine_version}{reason}"
    return f"{_definition_name(definition)}: {extra}"


def _finish(figure: Figure, trend: AcceptanceTrend, theme: Theme, words: Words) -> Figure:
    layout = figure["layout"]
    add_bands(layout, idle_bands(trend.points, trend.step_seconds), "idle", theme)
    add_markers(layout, [Marker(epoch_ms(launch.time), launch.label) for launch in trend.launches], theme)
    if trend.is_demo:
        add_watermark(layout, theme)
    describe(figure, words, trend.is_demo)
    return figure
