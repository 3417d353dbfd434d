"""Find the panels of all domains by convention, and draw them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from sqlalchemy.orm import Session

import specscope_server
from specscope_server.figures.alert_marks import add_alerts, has_time
from specscope_server.kit.errors import NotFound
from specscope_server.kit.figures import Figure
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.panel import Panel, PanelQuery
from specscope_server.store.alert_spans import read_spans


@lru_cache(maxsize=1)
def panels() -> dict[str, Panel]:
    """Return name → panel, from each domain folder with a ``panels.py``; names must not repeat."""
    found: dict[str, Panel] = {}
    for package in sorted(pkgutil.iter_modules(specscope_server.__path__), key=lambda entry: entry.name):
        for panel in _panels_of(package.name) if package.ispkg else ():
            if panel.words.name in found:
                raise RuntimeError(
                    f"two panels are called {panel.words.name!r}; the second is in {package.name}"
                )
            found[panel.words.name] = panel
    return found


def _panels_of(domain: str) -> tuple[Panel, ...]:
    package = importlib.import_module(f"specscope_server.{domain}")
    if not any(module.name == "panels" for module in pkgutil.iter_modules(package.__path__)):
        return ()
    offered: tuple[Panel, ...] = importlib.import_module(f"{package.__name__}.panels").PANELS
    return offered


def panel(name: str) -> Panel:
    """Return one panel; raise `NotFound` with the nearest name that exists."""
    known = panels()
    if name not in known:
        hint = did_you_mean(name, known)
        raise NotFound(f"there is no figure {name[:60]!r}.{hint} The figures are listed at /api/v1/figures")
    return known[name]


def drawn(session: Session, name: str, query: PanelQuery, theme: Theme) -> Figure:
    """Return a figure as its domain draws it, with the alerts that fired then. Raises as `Panel.draw`."""
    chosen = panel(name)
    figure = chosen.draw(session, query, theme)
    if not (chosen.shows_alerts and has_time(figure)):
        return figure
    window = query.range.window()
    add_alerts(figure, read_spans(session, query.server, window.from_ms, window.to_ms), theme)
    return figure
