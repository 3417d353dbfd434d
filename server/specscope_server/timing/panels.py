"""Figures of time, served by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy.orm import Session

from specscope_server.kit.figures import Figure, Words
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState
from specscope_server.timing import cell_figures, figures
from specscope_server.timing.compare import compare
from specscope_server.timing.ranks import ranks
from specscope_server.timing.remembered import once
from specscope_server.timing.schemas import (
    TimingComparison,
    TimingRanks,
    TimingSummary,
    TimingSurface,
    TimingTrend,
)
from specscope_server.timing.service import Question, summary
from specscope_server.timing.surface import Experts, surface
from specscope_server.timing.trend import trend

NO_CHOICE = ("all", "newest", "")


def asked(query: PanelQuery) -> Question:
    """Return the question that a panel is drawn for."""
    return Question(query.server, query.launch, query.range, query.rank)


def asked_newest(query: PanelQuery) -> Question:
    """Return the same of the newest launch while none is chosen: a mean over launches hides what changed."""
    return Question(query.server, query.launch or "newest", query.range, query.rank)


def summary_once(session: Session, state: AppState, question: Question) -> TimingSummary:
    """Return the summary, computed once for a page and its charts."""
    key = ("summary", question.server, question.launch, question.rank)
    return once(session, state, key, _bare(question.span), lambda: summary(session, state, question))


def ranks_once(session: Session, state: AppState, question: Question) -> TimingRanks:
    """Return the ranks, computed once for a page and its chart."""
    key = ("ranks", question.server, question.launch, question.rank)
    return once(session, state, key, _bare(question.span), lambda: ranks(session, state, question))


def surface_once(
    session: Session, state: AppState, question: Question, experts: Experts | None
) -> TimingSurface:
    """Return verify's cost by batch size and D, computed once for a page and its chart."""
    key = ("surface", question.server, question.launch, question.rank, experts)
    return once(
        session, state, key, _bare(question.span), lambda: surface(session, state, question, experts)
    )  # fmt: skip


def comparison_once(
    session: Session, state: AppState, server: str, span: TimeRange, launch: str | None
) -> TimingComparison:
    """Return a launch against the one before it, computed once for a page and its chart."""
    key = ("comparison", server, launch)
    return once(
        session, state, key, _bare(span), lambda: compare(session, state, server, span, None, launch)
    )  # fmt: skip


def _bare(span: TimeRange) -> TimeRange:
    """Return the range without its buckets, of which these answers do not depend."""
    return replace(span, step_ms=None, points=0)


def _of_summary(words: Words, draw: Callable[[TimingSummary, Theme], Figure]) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        return draw(summary_once(session, query.state, asked_newest(query)), theme)

    return Panel(words, drawn)


def _of_trend(words: Words, draw: Callable[[TimingTrend, Theme], Figure]) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        question = asked(query)
        found = once(
            session, query.state, ("trend", question.server, question.launch, question.rank), question.span,
            lambda: trend(session, query.state, question),
        )  # fmt: skip
        return draw(found, theme)

    return Panel(words, drawn)


def _surface(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return cell_figures.surface_figure(surface_once(session, query.state, asked_newest(query), None), theme)


def _ranks(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return cell_figures.ranks_figure(ranks_once(session, query.state, asked_newest(query)), theme)


def _comparison(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    chosen = None if query.launch in (None, *NO_CHOICE) else query.launch
    found = comparison_once(session, query.state, query.server, query.range, chosen)
    return cell_figures.comparison_figure(found, theme)


PANELS = (
    _of_summary(figures.WATERFALL, figures.waterfall_figure),
    _of_trend(figures.SHARES, figures.shares_figure),
    _of_trend(figures.PER_CYCLE, figures.per_cycle_figure),
    _of_summary(figures.SENSITIVITY, figures.sensitivity_figure),
    Panel(cell_figures.SURFACE, _surface),
    Panel(cell_figures.RANKS, _ranks),
    Panel(cell_figures.COMPARISON, _comparison),
)
