"""Acceptance by draft position: read histograms of requests, keep launches and depths apart, and word it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.acceptance.position_counters import Counted, counted_launches
from specscope_server.acceptance.position_schemas import AcceptancePositions, PositionGroup, PositionPoint
from specscope_server.acceptance.requests import FINISHED, bounds_of, finished_in
from specscope_server.acceptance.schemas import Evidence
from specscope_server.acceptance.service import launch_brief
from specscope_server.acceptance.statistics import MIN_CYCLES
from specscope_server.acceptance.survival import (
    Position,
    depth_of,
    length_classes,
    positions_of,
    request_lengths,
)
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.params import TimeRange
from specscope_server.models import Launch, Request
from specscope_server.store.lookup import choose_launches, server_by_name
from specscope_server.store.series_reader import find_series

MAX_REQUESTS = 20_000
"""Newest requests that one answer is computed from."""
FINE_BUCKETS = 500
VARIED = "cycles proposed differently many drafts: Sₖ is of those that proposed a k-th one"
_HISTOGRAMS = (
    select(Request.launch_id, Request.verify_calls, Request.proposed_drafts, Request.accepted_histogram)
    .where(*FINISHED, Request.accepted_histogram.is_not(None))
    .order_by(Request.time_ms.desc())
    .limit(MAX_REQUESTS)
)
GroupKey: TypeAlias = tuple[int, int | None]
"""(launch id, K), K None where cycles of a request may have proposed differently many drafts."""

HOW_TO_SEND = (
    "No request of this range reported a histogram of accepted drafts. SGLang 0.5.15 and later give one in "
    "meta_info of each answer: pass answers on to POST /api/v1/requests (the guide 'Send requests' has a "
    "helper for clients), or import what --export-metrics-to-file wrote with 'specscope import requests'."
)


def positions(session: Session, server: str, launch: str | None, span: TimeRange) -> AcceptancePositions:
    """Return acceptance by position over ``span``; raises `NotFound` for an unknown server or launch."""
    row = server_by_name(session, server)
    launches = {item.id: item for item in choose_launches(session, row.id, launch, span.from_ms, span.to_ms)}
    window = Window(span.from_ms, span.to_ms, span.to_ms - span.from_ms)
    counted = counted_launches(session, launches, fine_buckets(window))
    known = {one.launch.id for one in counted}
    rest = {key: item for key, item in launches.items() if key not in known}
    found = _histograms(session, row.id, rest, window)
    used = sum(len(rows) for rows in found.values())
    without = _without(session, row.id, list(rest), window)
    groups = [_group(launches[key[0]], key[1], rows) for key, rows in found.items()]
    groups += [counted_group(one) for one in counted]
    groups.sort(key=lambda group: (group.launch.first_seen, group.launch.id, group.cycles))
    return AcceptancePositions.model_validate(
        {
            "server": server, "from": to_iso(span.from_ms), "to": to_iso(span.to_ms),
            "is_demo": any(item.is_demo for item in launches.values()), "groups": groups,
            "requests_without_histogram": without, "is_limited": used >= MAX_REQUESTS,
            "note": _note(used, without, is_counted=bool(counted)),
        }
    )  # fmt: skip


def fine_buckets(window: Window) -> Window:
    """Return the window in the buckets over which intervals are bootstrapped."""
    span_ms = window.to_ms - window.from_ms
    return Window(window.from_ms, window.to_ms, max(-(-span_ms // FINE_BUCKETS), 1_000))


def histogram_groups(
    session: Session, server_id: int, launches: Mapping[int, Launch], window: Window
) -> list[PositionGroup]:
    """Return the groups that histograms of finished requests give, one for each launch and depth."""
    found = _histograms(session, server_id, launches, window)
    return [_group(launches[key[0]], key[1], rows) for key, rows in found.items()]


def has_histograms(session: Session, server: str, launch: str | None, span: TimeRange) -> bool:
    """Tell whether anything of the range tells acceptance by position: counters, or requests' histograms."""
    row = server_by_name(session, server)
    ids = [item.id for item in choose_launches(session, row.id, launch, span.from_ms, span.to_ms)]
    counting = find_series(session, metrics=["spec.drafts_accepted"], launch_ids=ids) if ids else []
    if any("position" in ref.labels for ref in counting):
        return True
    window = Window(span.from_ms, span.to_ms, span.to_ms - span.from_ms)
    query = select(Request.id).where(
        *finished_in(row.id, ids, window), Request.accepted_histogram.is_not(None)
    )
    return session.scalar(query.limit(1)) is not None


def _histograms(
    session: Session, server_id: int, launches: Mapping[int, Launch], window: Window
) -> dict[GroupKey, list[list[int]]]:
    groups: dict[GroupKey, list[list[int]]] = {}
    bounds = bounds_of(server_id, list(launches), window)
    rows: list[tuple[Any, ...]] = [tuple(row) for row in session.execute(_HISTOGRAMS, bounds)]
    for launch_id, calls, proposed, text in rows:
        histogram: list[int] = orjson.loads(text)
        depth = depth_of(launches[launch_id], calls, proposed, histogram)
        groups.setdefault((launch_id, depth), []).append(histogram)
    return groups


def _group(launch: Launch, depth: int | None, rows: Sequence[Sequence[int]]) -> PositionGroup:
    size = (depth or max(map(len, rows)) - 1) + 1
    matrix = np.array([(*row, *[0] * size)[:size] for row in rows], dtype=np.int64)
    found, lengths = positions_of(matrix), request_lengths(matrix)
    bounds, counts = length_classes(lengths, size - 1)
    cycles = int(matrix.sum())
    accepted = int((matrix @ np.arange(size)).sum())
    return PositionGroup(
        launch=launch_brief(launch),
        num_steps=depth,
        requests=len(rows),
        cycles=cycles,
        accepted_drafts=accepted,
        accept_length=1 + accepted / cycles,
        request_mean_accept_length=float(lengths.mean()),
        sums_to_accept_length=abs(sum(p.survival.value or 0 for p in found) - accepted / cycles) < 1e-9,
        positions=[_point(position) for position in found],
        length_bounds=bounds,
        length_requests=counts,
        note=""
        if depth
        else "cycles may have proposed differently many drafts, so late positions look worse",
    )


def counted_group(counted: Counted) -> PositionGroup:
    """Return the group that counters of accepted drafts by position give."""
    found = counted.positions()
    cycles = float(np.nansum(counted.cycles[:, 0]))
    accepted = float(np.nansum(counted.accepted))
    per_cycle = accepted / cycles if cycles else 0.0
    adds_up = abs(sum(position.survival.value or 0 for position in found) - per_cycle) < 1e-6
    notes = [VARIED] if not adds_up else []
    if counted.contradictions:
        notes.append(f"{counted.contradictions} intervals are left out, because a count came late")
    return PositionGroup(
        launch=launch_brief(counted.launch), num_steps=counted.depth, evidence=Evidence.DRAFT_COUNTERS,
        requests=None, cycles=round(cycles), accepted_drafts=round(accepted),
        accept_length=1 + per_cycle, request_mean_accept_length=None, sums_to_accept_length=adds_up,
        positions=[_point(position) for position in found], length_bounds=[], length_requests=[],
        note="; ".join(notes),
    )  # fmt: skip


def _point(position: Position) -> PositionPoint:
    survival, conditional = position.survival, position.conditional
    return PositionPoint(
        position=position.position, offered=position.offered, accepted=position.accepted,
        survival=survival.value, survival_low=survival.low, survival_high=survival.high,
        conditional=conditional.value, conditional_low=conditional.low, conditional_high=conditional.high,
        is_few=position.offered < MIN_CYCLES,
    )  # fmt: skip


def _without(session: Session, server_id: int, ids: Sequence[int], window: Window) -> int:
    scope = (*finished_in(server_id, ids, window), Request.accepted_histogram.is_(None))
    return int(session.scalar(select(func.count()).select_from(Request).where(*scope)) or 0)


def _note(used: int, without: int, *, is_counted: bool) -> str:
    if not used:
        return "" if is_counted else HOW_TO_SEND
    notes = [f"Only the newest {MAX_REQUESTS:,} requests are shown."] if used >= MAX_REQUESTS else []
    if without:
        notes.append(f"Left out, because they reported counts but no histogram: {without} requests.")
    return " ".join(notes)
