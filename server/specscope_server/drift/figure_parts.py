"""Parts that the charts of drift share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from specscope_server.drift.schemas import CellState
from specscope_server.kit.figures import Figure, Words, add_watermark, describe, time_layout
from specscope_server.kit.figures_theme import Theme

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
PHASE_TITLES = {"prefill": "prefill", "verify_accepted": "accepted", "verify_rejected": "rejected"}
STATE_TITLES = {
    CellState.SAME: "✓ same",
    CellState.SUSPECTED: "△ suspected",
    CellState.WRONG: "✕ wrong",
    CellState.NOT_ENOUGH: "· not enough",
    CellState.NOT_COMPARABLE: "· no reference",
    CellState.NO_DATA: "· no rows",
}


def slot_colours(theme: Theme) -> tuple[str, ...]:
    """Return colours of slots, told apart by dash and symbol too."""
    return (theme.draft, theme.verify, theme.draft_extend, theme.rejected, theme.sampling, theme.host)


def plain_layout(theme: Theme) -> dict[str, Any]:
    """Return a layout with numbers along x instead of time."""
    layout = time_layout(theme, 0, 1)
    kept = {name: layout["xaxis"][name] for name in ("gridcolor", "linecolor", "zeroline")}
    layout["xaxis"] = {**kept, "fixedrange": True, "automargin": True}
    layout.update(dragmode=False, hovermode="closest")
    return layout


def category_layout(theme: Theme) -> dict[str, Any]:
    """Return a layout with names along x; every name is shown."""
    layout = plain_layout(theme)
    layout["xaxis"].update(type="category", tickmode="linear", dtick=1)
    return layout


def stacked_axes(layout: dict[str, Any], titles: Sequence[str], gap: float = 0.06) -> list[str]:
    """Put one y axis for each title above the other, the first on top; return their ids for traces."""
    count = max(len(titles), 1)
    height = (1 - gap * (count - 1)) / count
    common = dict(layout["yaxis"])
    names = []
    for index, title in enumerate(titles):
        top = 1 - index * (height + gap)
        key = "yaxis" if index == 0 else f"yaxis{index + 1}"
        domain = [max(top - height, 0.0), top]
        layout[key] = {**common, "domain": domain, "title": {"text": title, "standoff": 8}}
        names.append("y" if index == 0 else f"y{index + 1}")
    layout["xaxis"]["anchor"] = names[-1] if names else "y"
    return names


def finish(
    figure: Figure, words: Words, is_demo: bool, theme: Theme, *,
    note: str = "", along: str = "", upward: str = "",
) -> Figure:  # fmt: skip
    """Put the words on a figure; ``along`` and ``upward`` name what runs along x and y."""
    if is_demo:
        add_watermark(figure["layout"], theme)
    said = replace(words, definition=f"{words.definition} {note}".strip())
    describe(figure, said, is_demo)
    if along:
        figure["layout"]["meta"]["x"] = along
    if upward:
        figure["layout"]["meta"]["y"] = upward
    return figure


def main_phase(rows: Iterable[tuple[str, int]]) -> str | None:
    """Return the phase with most rows; the first in order of phases on a tie."""
    totals: dict[str, int] = {}
    for phase, count in rows:
        totals[phase] = totals.get(phase, 0) + count
    return max(totals, key=lambda phase: (totals[phase], phase == "prefill")) if totals else None
