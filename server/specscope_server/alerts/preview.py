"""A picture of what a rule watches: its signal over a range, its limit, and when it would have fired."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.condition import SignalCondition
from specscope_server.alerts.rules.matching import Matcher
from specscope_server.alerts.rules.reads import Frame, Grid, Points, labels_text
from specscope_server.alerts.rules.schema import Rule
from specscope_server.alerts.rules.schemas import FireItem
from specscope_server.alerts.rules.signals import signal
from specscope_server.kit.figures import (
    Band,
    Figure,
    Words,
    add_bands,
    describe,
    label,
    line_trace,
    time_layout,
    times,
)
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.signal import Target
from specscope_server.kit.web.state import AppState

POINTS = 240
MAX_LINES = 6
FIRES = "would have fired"
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def preview_figure(
    session: Session,
    state: AppState,
    rule: Rule,
    servers: Sequence[Target],
    span: tuple[int, int],
    fires: Sequence[FireItem],
    theme: Theme,
) -> Figure | None:
    """Return the picture over ``span`` (epoch ms); None for a rule whose condition is not of one signal."""
    condition = rule.condition
    if not isinstance(condition, SignalCondition):
        return None
    from_ms, to_ms = span
    step_ms = max((to_ms - from_ms) // POINTS, 1_000)
    instants = np.arange(from_ms + step_ms, to_ms + 1, step_ms, dtype=np.int64)
    frame = Frame(tuple(servers), instants, step_ms, state.clock(), state)
    grid = Points(condition.signal, condition.window).read(session, frame)
    return _drawn(rule, condition, grid, instants, span, fires, theme)


def _drawn(
    rule: Rule,
    condition: SignalCondition,
    grid: Grid,
    instants: np.ndarray[tuple[int], np.dtype[np.int64]],
    span: tuple[int, int],
    fires: Sequence[FireItem],
    theme: Theme,
) -> Figure:
    layout = time_layout(theme, *span)
    add_bands(layout, [_band(fire, span[1]) for fire in fires], FIRES, theme)
    shown = np.flatnonzero(Matcher(grid.keys).flags(condition.match)).tolist()
    colours = (theme.draft, theme.verify, theme.draft_extend, theme.rejected, theme.host, theme.accent)
    data = [
        line_trace(
            label(labels_text(grid.series[row].labels)), times(instants.tolist()),
            [None if np.isnan(value) else float(value) for value in grid.value[row]],
            colours[place], line={"dash": _DASHES[place]},
        )
        for place, row in enumerate(shown[:MAX_LINES])
    ]  # fmt: skip
    for name in ("above", "below"):
        limit = getattr(condition, name, None)
        if limit is not None:
            data.append(_limit(f"limit: {name} {limit:g}", float(limit), span, theme))
    more = f"; {len(shown) - MAX_LINES} more series are not drawn" if len(shown) > MAX_LINES else ""
    question = f"{signal(condition.signal).meaning} Over {condition.window // 1_000} s{more}."
    words = Words("rule-preview", rule.title, question, "", grid.unit)
    figure = {"data": data, "layout": layout}
    describe(figure, words, False)
    return figure


def _band(fire: FireItem, end_ms: int) -> Band:
    ends = end_ms if fire.to is None else datetime.fromisoformat(fire.to).timestamp() * 1_000
    return Band(datetime.fromisoformat(fire.from_).timestamp() * 1_000, ends)


def _limit(name: str, value: float, span: tuple[int, int], theme: Theme) -> dict[str, object]:
    return line_trace(name, times(span), [value, value], theme.bad, line={"dash": "dot", "width": 1.2})
