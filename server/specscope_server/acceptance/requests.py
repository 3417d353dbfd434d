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
from specscope_server.store.one_pass import remembered

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
    key = ("request sums", server_id, tuple(launch_ids), window.from_ms, window.to_ms)
    return remembered(session, key, lambda: _request_sums(session, server_id, launch_ids, window))


def _request_sums(
    session: Session, server_id: int, launch_ids: Sequence[int], window: Window
) -> RequestSums | None:
    row = session.execute(_SUMS, bounds_of(server_id, launch_ids, window)).one()
    n = int(row[0])
    if not n or not row[1]:
        return None
    sx, sy, sxx, sxy, syy = (float(value) for value in row[1:6])
    strict = Ratio(None)
    proposed = float(row[7]) if row[6] == n else None
    if proposed:
        strict = clustered_ratio(n, (proposed, sy, float(row[8]), float(row[9]), syy))
    return RequestSums(n, sx, sy, proposed, clustered_ratio(n, (sx, sy, sxx, sxy, syy)), strict, int(row[10]))


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
        is_traffic(),
        Request.server_id == server_id,
        Request.launch_id.in_(launch_ids),
        Request.time_ms >= from_ms,
        Request.time_ms < to_ms,
        Request.verify_calls > 0,
        Request.accepted_drafts.is_not(None),
    ]


FINISHED = _finished(
    bindparam("server_id"), bindparam("launch_ids", expanding=True), bindparam("from_ms"), bindparam("to_ms")
)
"""The same with parameters: a statement that is run often need not be built each time."""
_X, _Y, _P = (
    cast(column, Float) for column in (Request.verify_calls, Request.accepted_drafts, Request.proposed_drafts)
)
_SUMS = select(
    func.count(), func.sum(_X), func.sum(_Y), func.sum(_X * _X), func.sum(_X * _Y), func.sum(_Y * _Y),
    func.count(Request.proposed_drafts), func.sum(_P), func.sum(_P * _P), func.sum(_P * _Y),
    func.max(Request.time_ms),
).where(*FINISHED)  # fmt: skip
_HISTOGRAMS = (
    select(Request.accepted_histogram, Request.verify_calls)
    .where(*FINISHED, Request.accepted_histogram.is_not(None))
    .order_by(Request.time_ms.desc())
    .limit(CHECKED_HISTOGRAMS)
)
