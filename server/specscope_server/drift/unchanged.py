"""What a server's verdict on hidden states rests on, told without reading any profile."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.kit.signal import SignalQuery, Target
from specscope_server.models import Reference, StateProfile
from specscope_server.store.chunks import chunks
from specscope_server.store.lookup import recent_launches
from specscope_server.store.one_pass import pass_of, remembered, remembered_each

Rows: TypeAlias = tuple[int, ...]
"""(rows, highest id, sum of ids): rows are added and removed, never changed."""


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


def _profiles(session: Session, server_ids: Sequence[int], span: tuple[int, int]) -> dict[int, Rows]:
    query = select(
        StateProfile.server_id, func.count(), func.max(StateProfile.id), func.sum(StateProfile.id)
    ).where(StateProfile.time_ms > span[0], StateProfile.time_ms <= span[1])
    found: dict[int, Rows] = {}
    for part in chunks(server_ids):
        rows = session.execute(query.where(StateProfile.server_id.in_(part)).group_by(StateProfile.server_id))
        found |= {row[0]: tuple(map(int, row[1:])) for row in rows}
    return found


def _references(session: Session) -> Rows:
    columns = func.count(), func.max(Reference.id), func.sum(Reference.id), func.max(Reference.created_ms)
    return tuple(int(value or 0) for value in session.execute(select(*columns)).one())
