"""Find series by metric, server, launch and labels; in a pass of reading, of all servers at once, and of a
launch only anew when it has others than before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeVar

import orjson
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from specscope_server.models import Series
from specscope_server.store.buckets import SeriesRef
from specscope_server.store.chunks import chunks
from specscope_server.store.lasting import RowsState, lasting, states_of_rows
from specscope_server.store.lookup import recent_ids
from specscope_server.store.one_pass import pass_of, remembered, remembered_each

Made = TypeVar("Made")
_COLUMNS = (Series.id, Series.server_id, Series.launch_id, Series.metric, Series.labels)


def find_series(
    session: Session,
    *,
    metrics: Sequence[str],
    server_id: int | None = None,
    launch_ids: Sequence[int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[SeriesRef]:
    """Return the series that match all given conditions, ordered by id. ``labels`` matches as a subset."""
    found: Sequence[SeriesRef]
    if launch_ids is not None:
        found = _of_launches(session, metrics, launch_ids)
        found = [ref for ref in found if server_id in (None, ref.server_id)]
    elif server_id is not None:
        found = _of_server(session, metrics, server_id)
    else:
        found = _read(session, [Series.metric.in_(metrics)])
    wanted = (labels or {}).items()
    return [ref for ref in found if wanted <= ref.labels.items()] if wanted else list(found)


def of_servers(session: Session, metrics: Sequence[str], server_ids: Sequence[int]) -> list[SeriesRef]:
    """Return the series of these metrics that these servers have, by server and id."""
    return [ref for server_id in server_ids for ref in _of_server(session, metrics, server_id)]


def made_of_series(
    session: Session, key: tuple[object, ...], launch_id: int, make: Callable[[], Made]
) -> Made:
    """Return what was made of a launch's series (ids, labels, and what ``key`` tells) in an earlier pass,
    unless it has others since.
    """
    return lasting(session, (key, launch_id), _state(session, launch_id), make)


def _of_launches(session: Session, metrics: Sequence[str], launch_ids: Sequence[int]) -> list[SeriesRef]:
    if pass_of(session) is None:
        parts = chunks(launch_ids)
        found = [_read(session, [Series.metric.in_(metrics), Series.launch_id.in_(part)]) for part in parts]
    else:
        found = [_of_launch(session, tuple(metrics), launch_id) for launch_id in launch_ids]
    return found[0] if len(found) == 1 else sorted(chain(*found), key=lambda ref: ref.id)


def _of_launch(session: Session, metrics: tuple[str, ...], launch_id: int) -> list[SeriesRef]:
    def every() -> dict[str, list[SeriesRef]]:
        found: dict[str, list[SeriesRef]] = {}
        for ref in _read(session, [Series.launch_id == launch_id]):
            found.setdefault(ref.metric, []).append(ref)
        return found

    def chosen() -> list[SeriesRef]:
        by_metric = made_of_series(session, ("series",), launch_id, every)
        found = chain.from_iterable(by_metric.get(metric, []) for metric in set(metrics))
        return sorted(found, key=lambda ref: ref.id)

    return made_of_series(session, ("series", metrics), launch_id, chosen)


def _state(session: Session, launch_id: int) -> RowsState | None:
    if pass_of(session) is None:
        return None
    states = remembered_each(
        session,
        "states of series",
        [launch_id],
        lambda ids: states_of_rows(session, Series.launch_id, Series.id, ids),
        recent_ids(session),
    )
    return states.get(launch_id, (0, 0, 0))


def _of_server(session: Session, metrics: Sequence[str], server_id: int) -> Sequence[SeriesRef]:
    found = pass_of(session)
    if found is None or server_id not in found.server_ids:
        return _read(session, [Series.metric.in_(metrics), Series.server_id == server_id])
    every = remembered(
        session,
        ("series of servers", tuple(metrics)),
        lambda: _by_server(session, metrics, found.server_ids),
    )
    return every.get(server_id, [])


def _by_server(
    session: Session, metrics: Sequence[str], server_ids: Sequence[int]
) -> dict[int, list[SeriesRef]]:
    found: dict[int, list[SeriesRef]] = {}
    for part in chunks(server_ids):
        for ref in _read(session, [Series.metric.in_(metrics), Series.server_id.in_(part)]):
            found.setdefault(ref.server_id, []).append(ref)
    return found


def _read(session: Session, conditions: Sequence[ColumnElement[bool]]) -> list[SeriesRef]:
    rows = session.execute(select(*_COLUMNS).where(*conditions).order_by(Series.id))
    return [
        SeriesRef(row.id, row.server_id, row.launch_id, row.metric, dict(_labels(row.labels))) for row in rows
    ]


@lru_cache(maxsize=50_000)
def _labels(text: str) -> Mapping[str, str]:
    """Return labels as stored; the same few are read again and again."""
    found: dict[str, str] = orjson.loads(text)
    return found
