"""The newest value of each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.models import Latest
from specscope_server.store.buckets import SeriesRef
from specscope_server.store.series_reader import find_series


@dataclass(frozen=True, slots=True)
class LatestValue:
    """Newest sample of one series. ``span_ms`` is 0 for a level, the interval of growth for an increment."""

    series: SeriesRef
    time_ms: int
    value: float
    span_ms: int


def latest_values(
    session: Session, server_id: int, metrics: Sequence[str], launch_ids: Sequence[int] | None = None
) -> list[LatestValue]:
    """Return the newest value of each series of these metrics that has one, ordered by series id."""
    series = find_series(session, metrics=metrics, server_id=server_id, launch_ids=launch_ids)
    found: list[LatestValue] = []
    for start in range(0, len(series), 500):  # SQLite limits the number of bound values
        chunk = {ref.id: ref for ref in series[start : start + 500]}
        rows = session.scalars(select(Latest).where(Latest.series_id.in_(chunk)).order_by(Latest.series_id))
        found += [LatestValue(chunk[row.series_id], row.time_ms, row.value, row.span_ms) for row in rows]
    return found
