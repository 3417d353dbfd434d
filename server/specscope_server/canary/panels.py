"""Figures of the canary, served by name."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.canary import figures, service
from specscope_server.kit.figures import Figure
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery


def _trend(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    data = service.runs(session, query.server, query.range)
    return figures.trend_figure(data, query.range.from_ms, query.range.to_ms, theme)


def _pairs(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return figures.pairs_figure(service.compare(session, query.server, query.range, None, None), theme)


PANELS = (Panel(figures.TREND, _trend), Panel(figures.PAIRS, _pairs))
