"""Sums over the finished requests of a window: the best evidence, where requests are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Float, bindparam, case, cast, func, select
from sqlalchemy.orm import Session
from sqlalchemy.sql import ColumnElement

from specscope_server.acceptance.statistics import Ratio, clustered_ratio
from specscope_server.kit.timerange import Window
from specscope_server.models import Request
from specscope_server.store.canary import is_traffic
from specscope_server.store.chunks import chunks
from specscope_server.store.one_pass import pass_of, remembered

CHECKED_HISTOGRAMS = 1_000


@dataclass(frozen=True, slots=True)
class RequestSums:
    """Sums over requests with known verify calls and accepted drafts."""

    n: int
    cycles: float
    accepted: float
    proposed: float | None
    """None when a request does not say its proposed drafts."""
    accepted_per_cycle: Ratio
    strict: Ratio
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class RequestBucket:
    """Sums of one bucket."""

    cycles: float
    accepted: float
    proposed: float | None


def request_sums(
    session: Session, server_id: int, launch_ids: Sequence[int], window: Window
) -> RequestSums | None:
    """Return the sums over the window; None without any such request."""
    found = pass_of(session)
    if found is not None and server_id in found.server_ids:
        span = window.from_ms, window.to_ms
        every = remembered(
            session, ("request sums", span), lambda: _by_launch(session, found.server_ids, span)
        )
        return _told([every[key] for one in launch_ids if (key := (server_id, one)) in every])
    row = session.execute(_SUMS, bounds_of(server_id, launch_ids, window)).one()
    return _told([tuple(row)])


def _by_launch(
    session: Session, server_ids: Sequence[int], span: tuple[int, int]
) -> dict[tuple[int, int | None], tuple[Any, ...]]:
    """Return (server, launch) → sums over the window, of all servers at once."""
    found = {}
    for part in chunks(server_ids):
        bounds = {"server_ids": part, "from_ms": span[0], "to_ms": span[1]}
        for server_id, launch_id, *sums in session.execute(_SUMS_OF_ALL, bounds):
            found[server_id, launch_id] = tuple(sums)
    return found


def _told(rows: Sequence[tuple[Any, ...]]) -> RequestSums | None:
    """Return what sums over parts of the requests say together. Sums of whole numbers are exact."""
    if not rows:
        return None
    n, said = (sum(int(row[place]) for row in rows) for place in (0, 6))
    sx, sy, sxx, sxy, syy, sp, spp, spy = (
        sum(float(row[place] or 0) for row in rows) for place in (1, 2, 3, 4, 5, 7, 8, 9)
    )
    if not n or not sx:
        return None
    proposed = sp if said == n else None
    strict = clustered_ratio(n, (proposed, sy, spp, spy, syy)) if proposed else Ratio(None)
    newest_ms = max(int(row[10]) for row in rows if row[10] is not None)
    return RequestSums(n, sx, sy, proposed, clustered_ratio(n, (sx, sy, sxx, sxy, syy)), strict, newest_ms)


def request_buckets(
    session: Session, server_id: int, launch_ids: Sequence[int], window: Window
) -> dict[int, RequestBucket]:
    """Return bucket index → sums for the buckets in which requests finished."""
    place = (Request.time_ms - window.from_ms) // window.step_ms
    unsaid = func.sum(case((Request.proposed_drafts.is_(None), 1), else_=0))
    query = (
        select(
            place, func.sum(Request.verify_calls), func.sum(Request.accepted_drafts),
            func.sum(Request.proposed_drafts), unsaid,
        )
        .where(*finished_in(server_id, launch_ids, window))
        .group_by(place)
    )  # fmt: skip
    return {
        int(index): RequestBucket(float(cycles), float(accepted), None if missing else float(proposed))
        for index, cycles, accepted, proposed, missing in session.execute(query)
    }


def histograms_agree(
    session: Session, server_id: int, launch_ids: Sequence[int], window: Window
) -> tuple[int, int] | None:
    """Return (agreeing, checked) of Σh = verify calls for the newest requests; None without histograms."""
    found: list[tuple[Any, Any]] = list(
        session.execute(_HISTOGRAMS, bounds_of(server_id, launch_ids, window))
    )
    if not found:
        return None
    return sum(sum(orjson.loads(histogram)) == calls for histogram, calls in found), len(found)


def finished_in(server_id: int, launch_ids: Sequence[int], window: Window) -> list[ColumnElement[bool]]:
    """Return the conditions for requests of the window that say verify calls and accepted drafts.

    A canary's are left out: a few chosen prompts say nothing about the traffic.
    """
    return _finished(server_id, launch_ids, window.from_ms, window.to_ms)


def bounds_of(server_id: int, launch_ids: Sequence[int], window: Window) -> dict[str, Any]:
    """Return the parameters of `FINISHED`."""
    return {
        "server_id": server_id, "launch_ids": launch_ids, "from_ms": window.from_ms, "to_ms": window.to_ms,
    }  # fmt: skip


def _finished(server_id: Any, launch_ids: Any, from_ms: Any, to_ms: Any) -> list[ColumnElement[bool]]:
    return [
        is_traffic(), Request.server_id == server_id, Request.launch_id.in_(launch_ids),
        *_told_in(from_ms, to_ms),
    ]  # fmt: skip


def _told_in(from_ms: Any, to_ms: Any) -> list[ColumnElement[bool]]:
    return [
        Request.time_ms >= from_ms, Request.time_ms < to_ms, Request.verify_calls > 0,
        Request.accepted_drafts.is_not(None),
    ]  # fmt: skip


FINISHED = _finished(
    bindparam("server_id"), bindparam("launch_ids", expanding=True), bindparam("from_ms"), bindparam("to_ms")
)
"""The same with parameters: a statement that is run often need not be built each time."""
_X, _Y, _P = (
    cast(column, Float) for column in (Request.verify_calls, Request.accepted_drafts, Request.proposed_drafts)
)
_COLUMNS = (
    func.count(), func.sum(_X), func.sum(_Y), func.sum(_X * _X), func.sum(_X * _Y), func.sum(_Y * _Y),
    func.count(Request.proposed_drafts), func.sum(_P), func.sum(_P * _P), func.sum(_P * _Y),
    func.max(Request.time_ms),
)  # fmt: skip
_SUMS = select(*_COLUMNS).where(*FINISHED)
_SUMS_OF_ALL = (
    select(Request.server_id, Request.launch_id, *_COLUMNS)
    .where(
        is_traffic(), Request.server_id.in_(bindparam("server_ids", expanding=True)),
        *_told_in(bindparam("from_ms"), bindparam("to_ms")),
    )
    .group_by(Request.server_id, Request.launch_id)
)  # fmt: skip
_HISTOGRAMS = (
    select(Request.accepted_histogram, Request.verify_calls)
    .where(*FINISHED, Request.accepted_histogram.is_not(None))
    .order_by(Request.time_ms.desc())
    .limit(CHECKED_HISTOGRAMS)
)
