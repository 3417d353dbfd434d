"""When each series was last written."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.models import Latest
from specscope_server.store.chunks import chunks


def newest_times(session: Session, series_ids: Sequence[int]) -> dict[int, int]:
    """Return series id → time of its newest sample in epoch ms, for those that have any."""
    found: dict[int, int] = {}
    for part in chunks(series_ids):
        query = select(Latest.series_id, Latest.time_ms).where(Latest.series_id.in_(part))
        found |= dict(session.execute(query).all())
    return found
