"""Figures of acceptance over time, served by name."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from specscope_server.acceptance import figures, heatmap_figures, position_figures, service
from specscope_server.acceptance.position_schemas import AcceptancePositions
from specscope_server.acceptance.position_trend import position_trend
from specscope_server.acceptance.position_trend_schemas import PositionTrend
from specscope_server.acceptance.positions import positions
from specscope_server.acceptance.schemas import AcceptanceTrend
from specscope_server.kit.figures import Figure, Words
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery


def _panel(words: Words, draw: Callable[[AcceptanceTrend, Theme], Figure]) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        trend = service.trend(session, query.state, query.server, query.launch, query.range, query.rank)
        return draw(trend, theme)

    return Panel(words, drawn)


def _by_position(words: Words, draw: Callable[[AcceptancePositions, Theme], Figure]) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        return draw(positions(session, query.server, query.launch, query.range), theme)

    return Panel(words, drawn)


def _over_time(words: Words, draw: Callable[[PositionTrend, Theme], Figure]) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        return draw(position_trend(session, query.server, query.launch, query.range), theme)

    return Panel(words, drawn)


PANELS = (
    _panel(figures.ACCEPT_LENGTH, figures.acceptance_trend_figure),
    _panel(figures.DRAFT_ACCEPTANCE, figures.strict_acceptance_figure),
    _panel(figures.ENGINE_RATE, figures.engine_rate_figure),
    _panel(figures.THROUGHPUT, figures.throughput_figure),
    _panel(figures.LOAD, figures.load_figure),
    _by_position(position_figures.POSITIONS, position_figures.positions_figure),
    _by_position(position_figures.REQUEST_LENGTHS, position_figures.request_lengths_figure),
    _over_time(heatmap_figures.SURVIVAL, heatmap_figures.survival_heatmap),
    _over_time(heatmap_figures.CONDITIONAL, heatmap_figures.conditional_heatmap),
)
