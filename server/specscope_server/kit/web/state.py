"""What endpoints may reach through ``app.state.specscope``: store, clock, a few limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from specscope_server.kit.clock import Clock


@dataclass(slots=True)
class AppState:
    """Everything that a request may need from the process."""

    engine: Engine
    clock: Clock
    scrape_interval_ms: int
    """Automatic steps are never shorter than this: emptier buckets would look like gaps."""
    collectors_alive: Callable[[], bool] | None = None
    """None = this process runs no collectors (they push from elsewhere, or none is configured)."""
    alerts_health: Callable[[], str] | None = None
    """Returns ``ok``, or what is wrong with the evaluation of alerts; may raise what the database raises."""

    @property
    def stale_after_ms(self) -> int:
        """Age after which the newest observation counts as stale: three scrapes, at least 30 s."""
        return max(3 * self.scrape_interval_ms, 30_000)


def get_state(request: Request) -> AppState:
    """Return the state of the application that serves this request."""
    return cast(AppState, request.app.state.specscope)


def get_session(request: Request) -> Iterator[Session]:
    """Yield one read session per request; endpoints never commit."""
    with Session(get_state(request).engine) as session:
        yield session


State = Annotated[AppState, Depends(get_state)]
Db = Annotated[Session, Depends(get_session)]
