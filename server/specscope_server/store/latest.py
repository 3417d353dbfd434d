"""When each series was last written."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.models import Latest
from specscope_server.store.chunks import chunks
from specscope_server.store.one_pass import pass_of, remembered_each


def newest_times(session: Session, series_ids: Sequence[int]) -> dict[int, int]:
    """Return series id → time of its newest sample in epoch ms, for those that have any."""
    asked = pass_of(session)
    if asked is None:
        return _newest_times(session, series_ids)
    told = {one: time_ms for one in series_ids if (time_ms := asked.newest_ms(one)) is not None}
    rest = [one for one in series_ids if one not in told]
    return told | remembered_each(session, "newest", rest, lambda ids: _newest_times(session, ids))


def _newest_times(session: Session, series_ids: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in chunks(series_ids):
        query = select(Latest.series_id, Latest.time_ms).where(Latest.series_id.in_(part))
        found |= dict(session.execute(query).all())
    return found
