"""Find the series that a query means, and shape the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_collectors.catalogue import CATALOGUE
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.ranks import rank_number
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Event, Latest, Series, Server
from specscope_server.series.query import Line
from specscope_server.store.lookup import (
    choose_launches,
    launch_by_id,
    newest_launches,
    server_by_name,
)
from specscope_server.store.series_reader import SeriesRef, find_series

MAX_SERIES = 2_000
"""Most stored series that one query may touch."""
MAX_VALUES = 4_000_000
"""Most values (series × buckets) that one query may hold; each takes about 60 bytes while it is answered."""


def parse_labels(texts: Sequence[str]) -> dict[str, str]:
    """Return the filter meant by ``["category=target_verify", …]``."""
    labels: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InvalidInput(
                f"label={text[:60]!r} is not NAME=VALUE; write e.g. label=category=target_verify"
            )
        labels[name] = value
    return labels


def select_series(
    session: Session,
    metrics: Sequence[str],
    server: str | None,
    launch: str | None,
    rank: int | None,
    labels: Mapping[str, str],
    window: Window,
) -> list[SeriesRef]:
    """Return the stored series that the parameters mean; raise when they are too many for one answer."""
    server_id, launch_ids = _scope(session, server, launch, window)
    found = find_series(
        session, metrics=metrics, server_id=server_id, launch_ids=launch_ids, labels=labels or None
    )
    if rank is not None:
        found = [ref for ref in found if rank_number(ref.labels, "dp_rank") == rank]
    if len(found) > MAX_SERIES:
        raise InvalidInput(
            f"this query touches {len(found)} series, over the limit of {MAX_SERIES}; "
            "name a server, a launch, a rank or labels"
        )
    if len(found) * window.buckets > MAX_VALUES:
        raise InvalidInput(
            f"{len(found)} series in {window.buckets} buckets are over the limit of {MAX_VALUES} values; "
            "choose a longer step, a shorter range or fewer series"
        )
    return found


def _scope(
    session: Session, server: str | None, launch: str | None, window: Window
) -> tuple[int | None, list[int] | None]:
    server_id = server_by_name(session, server).id if server else None
    if launch in (None, "", "all"):
        return server_id, None
    assert launch is not None
    if server_id is None:
        owner = launch_by_id(session, launch)
        if owner is None:
            raise NotFound(f"launch={launch[:60]!r} names no launch; give its id, or a server as well")
        return owner.server_id, [owner.id]
    return server_id, [
        row.id for row in choose_launches(session, server_id, launch, window.from_ms, window.to_ms)
    ]


def server_names(session: Session) -> dict[int, str]:
    """Return id → name of all servers."""
    return dict(session.execute(select(Server.id, Server.name)).all())


def document(lines: Sequence[Line], window: Window, names: Mapping[int, str]) -> dict[str, Any]:
    """Return the columnar answer; arrays stay NumPy (the writer turns NaN into null)."""
    return {
        "from": to_iso(window.from_ms),
        "to": to_iso(window.to_ms),
        "step_seconds": window.step_ms / 1_000,
        "time_ms": np.arange(window.buckets, dtype=np.int64) * window.step_ms + window.from_ms,
        "series": [
            {
                "metric": line.metric, "unit": line.unit, "stat": line.stat,
                "server": names.get(line.server_id), "launch_id": line.launch_id,
                "labels": line.labels, "members": line.members, "values": line.values, "n": line.n,
            }
            for line in lines
        ],
    }  # fmt: skip


ROW_COLUMNS = ("time", "server", "launch_id", "metric", "stat", "unit", "labels", "value", "n")


def rows(lines: Sequence[Line], window: Window, names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """Yield one row a line and bucket that was observed (for CSV and NDJSON)."""
    for line in lines:
        common = {
            "server": names.get(line.server_id), "launch_id": line.launch_id, "metric": line.metric,
            "stat": line.stat, "unit": line.unit, "labels": line.labels,
        }  # fmt: skip
        for index in np.flatnonzero(~np.isnan(line.values)):
            time = to_iso(window.from_ms + int(index) * window.step_ms)
            yield {"time": time, **common, "value": float(line.values[index]), "n": int(line.n[index])}


def catalogue_rows() -> list[dict[str, Any]]:
    """Return the metric catalogue."""
    return [
        {
            "name": row.name, "kind": row.kind.value, "unit": row.unit, "meaning": row.meaning,
            "across": row.across.value, "labels": list(row.labels),
        }
        for row in CATALOGUE.values()
    ]  # fmt: skip


def list_series(
    session: Session, metric: str | None, server: str | None, limit: int, cursor: str | None
) -> dict[str, Any]:
    """Return one page of stored series by id."""
    query = select(Series, Server.name).join(Server, Server.id == Series.server_id)
    if metric:
        query = query.where(Series.metric == metric)
    if server:
        query = query.where(Series.server_id == server_by_name(session, server).id)
    after = decode_cursor(cursor, (int,))
    if after:
        query = query.where(Series.id > after[0])
    found = session.execute(query.order_by(Series.id).limit(limit + 1)).all()
    items = [
        {
            "id": row.id,
            "server": name,
            "launch_id": row.launch_id,
            "metric": row.metric,
            "labels": orjson.loads(row.labels),
        }
        for row, name in found[:limit]
    ]
    return {"series": items, "next_cursor": encode_cursor([items[-1]["id"]]) if len(found) > limit else None}


def latest(session: Session, metrics: Sequence[str], server: str | None, now_ms: int) -> list[dict[str, Any]]:
    """Return the newest sample of each series of each server's newest launch, and of the server itself."""
    newest = [launch.id for launch in newest_launches(session).values()]
    query = (
        select(Series, Latest, Server.name)
        .join(Latest, Latest.series_id == Series.id)
        .join(Server, Server.id == Series.server_id)
        .where(Series.launch_id.is_(None) | Series.launch_id.in_(newest))
        .order_by(Server.name, Series.metric, Series.id)
    )
    if metrics:
        query = query.where(Series.metric.in_(metrics))
    if server:
        query = query.where(Series.server_id == server_by_name(session, server).id)
    return [_latest_row(*entry, now_ms) for entry in session.execute(query)]


def _latest_row(series: Series, newest: Latest, server: str, now_ms: int) -> dict[str, Any]:
    row = CATALOGUE.get(series.metric)
    return {
        "server": server, "launch_id": series.launch_id, "metric": series.metric,
        "kind": row.kind.value if row else None, "unit": row.unit if row else None,
        "labels": orjson.loads(series.labels), "time": to_iso(newest.time_ms),
        "age_seconds": (now_ms - newest.time_ms) / 1_000, "value": newest.value,
        "span_seconds": newest.span_ms / 1_000 if newest.span_ms else None,
    }  # fmt: skip


def list_events(
    session: Session,
    server: str | None,
    kind: str | None,
    from_ms: int,
    to_ms: int,
    limit: int,
    cursor: str | None,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Return one page of events inside [from_ms, to_ms), newest first; ``without``: kinds to leave out."""
    query = (
        select(Event, Server.name)
        .join(Server, Server.id == Event.server_id)
        .where(Event.time_ms >= from_ms, Event.time_ms < to_ms)
    )
    if server:
        query = query.where(Event.server_id == server_by_name(session, server).id)
    if kind:
        query = query.where(Event.kind == kind)
    if without:
        query = query.where(Event.kind.not_in(without))
    after = decode_cursor(cursor, (int, int))
    if after:
        time_ms, event_id = after
        query = query.where((Event.time_ms < time_ms) | ((Event.time_ms == time_ms) & (Event.id < event_id)))
    found = session.execute(query.order_by(Event.time_ms.desc(), Event.id.desc()).limit(limit + 1)).all()
    page = found[:limit]
    items = [
        {
            "id": event.id, "server": name, "launch_id": event.launch_id, "time": to_iso(event.time_ms),
            "kind": event.kind, "message": event.message, "detail": orjson.loads(event.detail),
        }
        for event, name in page
    ]  # fmt: skip
    more = encode_cursor([page[-1][0].time_ms, page[-1][0].id]) if len(found) > limit else None
    return {"events": items, "next_cursor": more}
