"""What a server's verdict on hidden states rests on, told without reading any profile."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.kit.signal import SignalQuery, Target
from specscope_server.models import Reference, StateProfile
from specscope_server.store.lasting import RowsState, states_of_rows
from specscope_server.store.lookup import recent_launches
from specscope_server.store.one_pass import pass_of, remembered, remembered_each


def state_of(session: Session, query: SignalQuery, server: Target) -> Hashable | None:
    """Return what is equal as long as a point has the same profiles, references, launches; None = not told.

    Outside a pass of reading, and for several points, nothing is told.
    """
    found = pass_of(session)
    if found is None or len(query.times_ms) != 1:
        return None
    span = query.begin_ms, int(query.times_ms[-1])
    profiles = remembered_each(
        session, ("profiles", span), [server.id], lambda ids: _profiles(session, ids, span), found.server_ids
    )
    references = remembered(session, "references", lambda: _references(session))
    launches = tuple(
        (launch.id, launch.model, launch.config) for launch in recent_launches(session).get(server.id, ())
    )
    return profiles.get(server.id), references, launches


def _profiles(session: Session, server_ids: Sequence[int], span: tuple[int, int]) -> dict[int, RowsState]:
    inside = StateProfile.time_ms > span[0], StateProfile.time_ms <= span[1]
    return states_of_rows(session, StateProfile.server_id, StateProfile.id, server_ids, *inside)


def _references(session: Session) -> tuple[int, ...]:
    columns = func.count(), func.max(Reference.id), func.sum(Reference.id), func.max(Reference.created_ms)
    return tuple(int(value or 0) for value in session.execute(select(*columns)).one())
