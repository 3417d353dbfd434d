"""Figures of drift, served by name."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.drift import figures, trend_figures
from specscope_server.drift.choosing import Asked
from specscope_server.drift.figure_parts import PHASE_TITLES
from specscope_server.drift.figures import Drawn
from specscope_server.drift.service import Question, Scene, drift, judgements_of, scene_of
from specscope_server.drift.trend import trend
from specscope_server.kit.figures import Figure
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery

TRAINING = "training"


def asked(query: PanelQuery) -> Question:
    """Return the question that a panel is drawn for."""
    return Question(query.server, query.launch, query.range, Asked(query.reference, query.boundaries))


def _grid(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return figures.grid_figure(drift(session, asked(query)), theme)


def _boundaries(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return figures.boundaries_figure(drift(session, asked(query)), theme)


def drawn_of(session: Session, scene: Scene) -> list[Drawn]:
    """Return the norms of each slot, of training and of the newest window of each phase."""
    found: list[Drawn] = []
    for cell in judgements_of(session, scene):
        newest = cell.newest
        if newest is None:
            continue
        profile = scene.yard.profile(cell.slot, "prefill", cell.captured) if newest.is_comparable else None
        if profile is not None and not any(each.is_reference and each.slot == cell.slot for each in found):
            found.append(Drawn(cell.slot, TRAINING, True, profile.norms, profile.rows, profile.requests))
        found.append(
            Drawn(cell.slot, PHASE_TITLES[cell.phase], False, newest.norms, newest.rows, newest.requests)
        )
    return found


def _note(scene: Scene) -> str:
    training = scene.yard.training or scene.yard.boundaries
    if training is None:
        return "There is no reference: the median is serving's own."
    version = training.version
    return f"Reference: {version.name[:60]}, version {version.version}, {training.document.rows:,} rows."


def _densities(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    scene = scene_of(session, asked(query))
    return figures.densities_figure(drawn_of(session, scene), scene.is_demo, theme, _note(scene))


def _bands(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    scene = scene_of(session, asked(query))
    return figures.bands_figure(drawn_of(session, scene), scene.is_demo, theme, _note(scene))


def _trend(statistic: str) -> Panel:
    def drawn(session: Session, query: PanelQuery, theme: Theme) -> Figure:
        return trend_figures.trend_figure(trend(session, query.state, asked(query)), statistic, theme)

    return Panel(trend_figures.STATISTICS[statistic], drawn)


def _joint(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return trend_figures.joint_figure(trend(session, query.state, asked(query)), theme)


PANELS = (
    Panel(figures.GRID, _grid),
    Panel(figures.DENSITIES, _densities),
    Panel(figures.BANDS, _bands),
    Panel(figures.BOUNDARIES, _boundaries),
    *(_trend(statistic) for statistic in trend_figures.STATISTICS),
    Panel(trend_figures.JOINT, _joint),
)
