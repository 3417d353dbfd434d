"""Figures of finished requests, served by name."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from specscope_server.kit.figures import Figure, Words
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery
from specscope_server.requests import figures
from specscope_server.requests.breakdown import read_breakdown
from specscope_server.requests.breakdown_schemas import Breakdown
from specscope_server.requests.filters import Scope, scope_of
from specscope_server.requests.outliers import judge
from specscope_server.requests.parts import DEFAULT
from specscope_server.requests.population import read_population


def _scope(session: Session, query: PanelQuery) -> Scope:
    return scope_of(session, query.server, query.launch, query.range, query.labels, query.search)


def _lengths(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    scope = _scope(session, query)
    population = read_population(session, scope)
    is_demo = any(launch.is_demo for launch in scope.launches.values())
    return figures.lengths_figure(figures.LengthData(population, judge(population), is_demo), theme)


def _by_part(words: Words, draw: Callable[[Breakdown, Theme], Figure]) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        found = read_breakdown(session, query.server, _scope(session, query), query.by or DEFAULT)
        return draw(found, theme)

    return Panel(words, drawn)


PANELS = (
    Panel(figures.LENGTHS, _lengths),
    _by_part(figures.PARTS, figures.parts_figure),
    _by_part(figures.POSITIONS, figures.part_positions_figure),
)
