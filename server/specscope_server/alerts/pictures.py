"""Pictures of panels for channels that carry them: drawn as on the pages, one at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict

from sqlalchemy.orm import Session

from specscope_server.alerts.channels.notification import CardFigure
from specscope_server.figures.png import picture_of
from specscope_server.figures.service import panel
from specscope_server.kit.figures_theme import THEMES
from specscope_server.kit.panel import PanelQuery
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState

KEPT = 16


class PanelPictures:
    """Draws panels with the browser of this machine, as `delivery.options.Pictures`."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._kept: OrderedDict[CardFigure, bytes] = OrderedDict()

    def __call__(self, figure: CardFigure) -> bytes | None:
        """Return the picture, the same for every channel and attempt. Raises what drawing raises."""
        with self._lock:
            if figure in self._kept:
                return self._kept[figure]
        made = self._draw(figure)
        with self._lock:
            self._kept[figure] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return made

    def _draw(self, figure: CardFigure) -> bytes:
        query = PanelQuery(
            server=figure.server,
            launch=None if figure.launch is None else str(figure.launch),
            rank=None,
            range=make_time_range(self._state, str(figure.from_ms), str(figure.to_ms)),
            state=self._state,
        )
        with Session(self._state.engine) as session:
            drawn = panel(figure.name).draw(session, query, THEMES["light"])
        return picture_of(drawn)
