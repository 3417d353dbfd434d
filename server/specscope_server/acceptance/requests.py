"""Sums over the finished requests of a window: the best evidence, where requests are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Float, case, cast, func, select
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
    x, y, p = (
        cast(column, Float)
        for column in (Request.verify_calls, Request.accepted_drafts, Request.proposed_drafts)
    )
    query = select(
        func.count(), func.sum(x), func.sum(y), func.sum(x * x), func.sum(x * y), func.sum(y * y),
        func.count(Request.proposed_drafts), func.sum(p), func.sum(p * p), func.sum(p * y),
        func.max(Request.time_ms),
    )  # fmt: skip
    row = session.execute(query.where(*finished_in(server_id, launch_ids, window))).one()
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
    query = (
        select(Request.accepted_histogram, Request.verify_calls)
        .where(*finished_in(server_id, launch_ids, window), Request.accepted_histogram.is_not(None))
        .order_by(Request.time_ms.desc())
        .limit(CHECKED_HISTOGRAMS)
    )
    found: list[tuple[Any, Any]] = list(session.execute(query))
    if not found:
        return None
    return sum(sum(orjson.loads(histogram)) == calls for histogram, calls in found), len(found)


def finished_in(server_id: int, launch_ids: Sequence[int], window: Window) -> list[ColumnElement[bool]]:
    """Return the conditions for requests of the window that say verify calls and accepted drafts.

    A canary's are left out: a few chosen prompts say nothing about the traffic.
    """
    return [
        is_traffic(),
        Request.server_id == server_id,
        Request.launch_id.in_(launch_ids),
        Request.time_ms >= window.from_ms,
        Request.time_ms < window.to_ms,
        Request.verify_calls > 0,
        Request.accepted_drafts.is_not(None),
    ]
