"""What a domain offers to be drawn: the `Panel`s that it lists as ``PANELS`` in its ``panels.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from specscope_server.kit.figures import Figure, Words
from specscope_server.kit.figures_theme import Theme
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """What is asked for. Times and step stand in ``range``."""

    server: str
    launch: str | None
    rank: int | None
    """Data-parallel rank; None = all of them together. Figures about the server as a whole ignore it."""
    range: TimeRange
    state: AppState
    by: str | None = None
    """What requests are compared by; only figures of parts of the requests take it."""
    labels: tuple[str, ...] = ()
    """``NAME=VALUE`` that requests must have; only figures of requests take it."""
    reference: int | None = None
    """Id of the training reference that hidden states are compared with; None = the newest that fits."""
    boundaries: int | None = None
    """The same for the reference of all boundaries."""
    search: str = ""
    """Beginning of a request's id, or a text in its labels; only figures of requests take it."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure that can be asked for by name."""

    words: Words
    draw: Callable[[Session, PanelQuery, Theme], Figure]
    """Raises `NotFound` or `InvalidInput` for a server, launch or range that cannot be shown."""
    shows_alerts: bool = True
    """Whether alerts that fired are marked in it, if its x is time."""
