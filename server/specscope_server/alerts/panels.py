"""Figures about alerts, served by name."""

from __future__ import annotations

from sqlalchemy.orm import Session

from specscope_server.alerts.figures import TIMELINE, timeline_figure
from specscope_server.kit.figures import Figure
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.panel import Panel, PanelQuery
from specscope_server.store.alert_spans import read_spans
from specscope_server.store.lookup import newest_launch, server_by_name


def _timeline(session: Session, query: PanelQuery, theme: Theme) -> Figure:
    server = server_by_name(session, query.server)
    window = query.range.window()
    spans = read_spans(session, server.name, window.from_ms, window.to_ms)
    launch = newest_launch(session, server.id)
    is_demo = bool(launch and launch.is_demo)
    return timeline_figure(spans, window.from_ms, window.to_ms, theme, is_demo=is_demo)


PANELS = (Panel(TIMELINE, _timeline, shows_alerts=False),)
