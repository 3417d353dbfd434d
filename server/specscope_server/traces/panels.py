"""Figures of captures, served by name. ``by`` chooses: ``trace:ID``, or ``trace:A,B`` for b against a."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.figures import Figure
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.traces import figures, service
from specscope_server.traces.schemas import TraceComparison, TraceDetail

PREFIX = "trace:"


def chosen_ids(by: str | None) -> tuple[int, ...]:
    """Return the one or two traces that ``by`` names; none for anything that is about something else.

    Raises `InvalidInput` for a choice of traces that is none.
    """
    if not by or not by.startswith(PREFIX):
        return ()
    parts = by.removeprefix(PREFIX).split(",")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and int(part) <= MAX_ID for part in parts):
        raise InvalidInput(f"by={by[:60]!r}: write trace:ID, or trace:A,B to compare two")
    return tuple(map(int, parts))


def shown(session: Session, server: str, by: str | None) -> TraceDetail | None:
    """Return the trace to show: the (second) one chosen, else the server's newest; None when it has none."""
    ids = chosen_ids(by)
    found = ids[-1] if ids else service.newest_id(session, server)
    return service.get_trace(session, found, None) if found is not None else None


def compared(session: Session, by: str | None) -> TraceComparison | None:
    """Return the comparison of two chosen traces; None without a choice of two."""
    ids = chosen_ids(by)
    return service.compare(session, *ids) if len(ids) == 2 else None


def _phases(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return figures.phases_figure(shown(session, query.server, query.by), theme)


def _changes(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    return figures.changes_figure(compared(session, query.by), theme)


PANELS = (Panel(figures.PHASES, _phases), Panel(figures.CHANGES, _changes))
