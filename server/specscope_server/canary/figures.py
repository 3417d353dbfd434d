"""Charts of the canary as plain plotly dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from specscope_server.canary.comparison import ACCEPT_LENGTH
from specscope_server.canary.schemas import CanaryComparison, CanaryPair, CanaryRun, CanaryRuns
from specscope_server.kit.figures import (
    Figure,
    Marker,
    Words,
    add_markers,
    add_watermark,
    describe,
    floats,
    label,
    line_trace,
    time_layout,
)
from specscope_server.kit.figures_theme import Theme

TREND = Words(
    name="canary-runs",
    title="Canary: accept length of each run",
    question="Does the same work still accept as many drafts?",
    definition="τ over all prompts of a run: 1 + Σ accepted drafts / Σ cycles. A cross marks a run with "
    "outputs that differ from the run before.",
    unit="tokens per cycle",
)
PAIRS = Words(
    name="canary-pairs",
    title="Canary: change of each prompt",
    question="Did the accept length change, prompt by prompt?",
    definition="τ of each prompt after the change, relative to before. Hollow: the output differs too. The "
    "largest loss is on top. The band is the 95 % interval of the mean.",
    unit="%",
)
MAX_SETS, MAX_PROMPTS, NAMED_PROMPTS = 4, 60, 10
"""More prompts than `NAMED_PROMPTS` have no room for names beside the axis: the hover tells them."""
DASHES = ("solid", "dash", "dashdot", "dot")


def trend_figure(data: CanaryRuns, from_ms: int, to_ms: int, theme: Theme) -> Figure:
    """One line for each set of prompts over the runs, launches marked."""
    layout = time_layout(theme, from_ms, to_ms)
    oldest_first = [run for run in reversed(data.runs) if run.accept_length is not None]
    sets = list(dict.fromkeys(run.prompt_set for run in reversed(oldest_first)))[:MAX_SETS]
    traces = [
        _trend(name, [run for run in oldest_first if run.prompt_set == name], index, len(sets), theme)
        for index, name in enumerate(sets)
    ]
    layout["yaxis"].update(title={"text": "τ", "standoff": 8}, hoverformat=".2f")
    add_markers(layout, _launches(oldest_first), theme)
    return _finish({"data": traces, "layout": layout}, TREND, data.is_demo, theme)


def _trend(name: str, runs: Sequence[CanaryRun], index: int, sets: int, theme: Theme) -> dict[str, Any]:
    title = "accept length τ" if sets == 1 else label(f"τ, set {name}", 60)
    values = [run.accept_length for run in runs]
    trace = line_trace(title, [run.time for run in runs], values, theme.accepted)
    trace.update(
        mode="lines+markers",
        line={"color": theme.accepted, "width": 1.8, "dash": DASHES[index]},
        marker={
            "color": theme.accepted, "size": 7,
            "symbol": ["x" if run.outputs_changed else "circle" for run in runs],
        },
        text=[_run_text(run) for run in runs],
        hovertemplate="%{y:.2f} (%{text})",
    )  # fmt: skip
    return trace


def _run_text(run: CanaryRun) -> str:
    changed = f", {run.outputs_changed} outputs changed" if run.outputs_changed else ""
    return f"{run.prompts} prompts, {run.cycles or 0:,} cycles{changed}"


def _launches(runs: Sequence[CanaryRun]) -> list[Marker]:
    """Return a marker where a run is of another launch than the one before."""
    return [
        Marker(run.run, f"launch {run.launch_id}")
        for before, run in pairwise(runs)
        if run.launch_id not in (None, before.launch_id)
    ]


def pairs_figure(data: CanaryComparison, theme: Theme) -> Figure:
    """A dot for each prompt at its change in percent, the largest loss on top."""
    layout = time_layout(theme, 0, 1)
    plain = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor")}
    pairs = sorted(_changes(data), key=lambda item: item[0])
    shown = pairs[:MAX_PROMPTS]
    layout["xaxis"] = {
        **plain, "type": "linear", "zeroline": True, "zerolinecolor": theme.ink_soft, "fixedrange": True,
        "ticksuffix": " %", "title": {"text": "change of τ", "standoff": 4},
    }  # fmt: skip
    layout["yaxis"].update(
        type="category", autorange="reversed", nticks=0, dtick=1, automargin=True,
        showticklabels=len(shown) <= NAMED_PROMPTS,
    )  # fmt: skip
    layout.update(dragmode=False, hovermode="closest")
    traces = [_dots(shown, same, theme) for same in (True, False)]
    _band(layout, data, theme)
    figure: Figure = {"data": [trace for trace in traces if trace["text"]], "layout": layout}
    hidden = len(pairs) - len(shown)
    words = replace(PAIRS, question=f"{PAIRS.question} {data.verdict}.")
    if hidden:
        words = replace(words, definition=f"{words.definition} {hidden} more prompts are not drawn.")
    figure = _finish(figure, words, data.is_demo, theme)
    figure["layout"]["meta"]["x"] = "change"
    return figure


def _changes(data: CanaryComparison) -> list[tuple[float, CanaryPair]]:
    """Return (change in percent, pair) of the prompts that have an accept length on both sides."""
    return [
        (100 * (pair.b_accept_length / pair.a_accept_length - 1), pair)
        for pair in data.pairs
        if pair.a_accept_length and pair.b_accept_length
    ]


def _dots(pairs: Sequence[tuple[float, CanaryPair]], same: bool, theme: Theme) -> dict[str, Any]:
    own = [(value, pair) for value, pair in pairs if pair.same_output is same]
    return {
        "type": "scatter", "mode": "markers",
        "name": "same output" if same else "another output",
        "x": floats(value for value, _ in own),
        "y": [label(pair.prompt, 40) for _, pair in own],
        "marker": {
            "color": theme.accepted if same else theme.rejected, "size": 9,
            "symbol": "circle" if same else "diamond-open",
        },
        "text": [f"{pair.a_accept_length:.2f} → {pair.b_accept_length:.2f}" for _, pair in own],
        "hovertemplate": "%{y}: %{x:+.1f} % (%{text})<extra></extra>",
    }  # fmt: skip


def _band(layout: dict[str, Any], data: CanaryComparison, theme: Theme) -> None:
    found = next((change for change in data.changes if change.name == ACCEPT_LENGTH), None)
    if found is None or found.low is None or found.high is None:
        return
    layout["shapes"].append({
        "type": "rect", "layer": "below", "xref": "x", "yref": "paper", "y0": 0, "y1": 1,
        "x0": 100 * found.low, "x1": 100 * found.high, "fillcolor": theme.accepted, "opacity": 0.18,
        "line": {"width": 0}, "name": "mean, 95 % interval", "showlegend": True,
    })  # fmt: skip


def _finish(figure: Figure, words: Words, is_demo: bool, theme: Theme) -> Figure:
    if is_demo:
        add_watermark(figure["layout"], theme)
    describe(figure, words, is_demo)
    return figure
