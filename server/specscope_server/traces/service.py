"""List, show and compare stored captures."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session, defer

from specscope_collectors.observations import TraceSummary
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Launch, Server, Trace
from specscope_server.store.lookup import server_by_name
from specscope_server.store.trace_writer import read_trace
from specscope_server.traces import comparison
from specscope_server.traces.keeping import path_of
from specscope_server.traces.schemas import TraceComparison, TraceDetail, TraceItem, TraceList
from specscope_server.traces.views import detail_of, item_of


def list_traces(session: Session, server: str, limit: int, cursor: str | None) -> TraceList:
    """Return captures of a server, newest first. Raises `NotFound`, `InvalidInput`."""
    owner = server_by_name(session, server)
    query = select(Trace).options(defer(Trace.body)).where(Trace.server_id == owner.id)
    after = decode_cursor(cursor, (int, int))
    if after is not None:
        query = query.where(tuple_(Trace.time_ms, Trace.id) < tuple(after))
    rows = session.scalars(query.order_by(Trace.time_ms.desc(), Trace.id.desc()).limit(limit + 1)).all()
    shown = rows[:limit]
    following = encode_cursor([shown[-1].time_ms, shown[-1].id]) if len(rows) > limit else None
    is_demo = _is_demo(session, owner.id)
    items = [item_of(row, owner.name, is_demo=is_demo) for row in shown]
    return TraceList(traces=items, next_cursor=following)


def get_trace(session: Session, trace_id: int, folder: Path | None) -> TraceDetail:
    """Return one capture. Raises `NotFound`."""
    row, server, record = _load(session, trace_id)
    return detail_of(row, server, record, folder, is_demo=_is_demo(session, row.server_id))


def newest_id(session: Session, server: str) -> int | None:
    """Return the newest capture of a server. Raises `NotFound` for a server that is not known."""
    items = list_traces(session, server, 1, None).traces
    return items[0].id if items else None


def file_path(session: Session, trace_id: int, index: int, folder: Path | None) -> tuple[Path, str]:
    """Return where an original file is kept, and its name. Raises `NotFound`."""
    row, _, record = _load(session, trace_id)
    if index >= len(record.files):
        raise NotFound(f"trace {trace_id} has {len(record.files)} files; count from 0")
    name = record.files[index].name
    path = path_of(folder, row.key, name)
    if path is None:
        raise NotFound(
            f"the original of trace {trace_id} is not kept here; set trace_folder to keep those that follow"
        )
    return path, name


def compare(session: Session, a: int, b: int) -> TraceComparison:
    """Return capture b against capture a. Raises `NotFound`, `InvalidInput` for one and the same."""
    if a == b:
        raise InvalidInput(f"a={a} and b={b} are the same trace; name two")
    before, after = _load(session, a), _load(session, b)
    changes = comparison.changes_of(before[2], after[2])
    return TraceComparison(
        a=_item(session, before[0], before[1]),
        b=_item(session, after[0], after[1]),
        verdict=comparison.verdict_of(changes),
        notes=list(comparison.notes_of(before[2], after[2])),
        changes=changes,
    )


def _item(session: Session, row: Trace, server: str) -> TraceItem:
    return item_of(row, server, is_demo=_is_demo(session, row.server_id))


def _is_demo(session: Session, server_id: int) -> bool:
    found = select(Launch.id).where(Launch.server_id == server_id, Launch.is_demo).limit(1)
    return session.scalar(found) is not None


def _load(session: Session, trace_id: int) -> tuple[Trace, str, TraceSummary]:
    found = session.execute(
        select(Trace, Server.name).join(Server, Server.id == Trace.server_id).where(Trace.id == trace_id)
    ).one_or_none()
    if found is None:
        raise NotFound(f"there is no trace {trace_id}; they are listed at /api/v1/traces?server=NAME")
    return found[0], found[1], read_trace(found[0].body)
