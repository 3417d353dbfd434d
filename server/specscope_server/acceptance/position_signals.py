"""Acceptance by draft position as signals: S_k and α_k, from the best evidence of each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.plain import ended
from specscope_server.acceptance.position_counters import Counted, counted_launches
from specscope_server.acceptance.position_schemas import PositionGroup, PositionPoint
from specscope_server.acceptance.positions import counted_group, fine_buckets, histogram_groups
from specscope_server.acceptance.rolling import Cut, Rolling, cuts, rolling
from specscope_server.acceptance.statistics import Floats
from specscope_server.kit.signal import Read, Signal, SignalQuery, SignalSeries, Target, Why, each_server
from specscope_server.kit.timerange import Window

MAX_POSITIONS = 64


def groups_of(session: Session, query: SignalQuery, server: Target) -> list[PositionGroup | None]:
    """Return for each point the group of its newest launch with most cycles; None = no position is told."""
    return query.shared(("positions", server.id), lambda: _groups(session, query, server))


def _groups(session: Session, query: SignalQuery, server: Target) -> list[PositionGroup | None]:
    found = rolling(session, query, server)
    if not found.launches:
        return [None] * len(found.contexts)
    whole = found.whole if len(found.contexts) > 1 else fine_buckets(found.whole)
    launches = {launch.id: launch for launch in found.launches}
    counted = counted_launches(session, launches, whole)
    by_requests = any(context.measured.requests is not None for context in found.contexts)
    return [
        _newest(session, server, found, counted, by_requests, cut, whole) for cut in cuts(query, whole)
    ]  # fmt: skip


def _newest(
    session: Session,
    server: Target,
    found: Rolling,
    counted: Sequence[Counted],
    by_requests: bool,
    cut: Cut,
    whole: Window,
) -> PositionGroup | None:
    parts = [_cut(one, cut) for one in counted]
    groups = [counted_group(one) for one in parts if np.nansum(one.cycles[:, 0]) > 0]
    if by_requests:
        told = {one.launch.id for one in counted}
        rest = {launch.id: launch for launch in found.launches if launch.id not in told}
        groups += histogram_groups(session, server.id, rest, cut.window)
    if not groups:
        return None
    newest = max(group.launch.first_seen for group in groups)
    return max((group for group in groups if group.launch.first_seen == newest), key=lambda one: one.cycles)


def _cut(one: Counted, cut: Cut) -> Counted:
    part = slice(cut.first, cut.last)
    return replace(one, cycles=one.cycles[part], offered=one.offered[part], accepted=one.accepted[part])


def _reader(field: str, n_field: str) -> Read:
    def read(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
        groups = groups_of(session, query, server)
        rolled = rolling(session, query, server)
        depth = max((len(group.positions) for group in groups if group), default=0)
        idle = [context.measured.ends_idle for context in rolled.contexts]
        series = [
            _series(server, [_point(group, k) for group in groups], groups, idle, field, n_field, k)
            for k in range(1, min(depth, MAX_POSITIONS) + 1)
        ]
        return ended(query, rolled.launches, series)

    return each_server(read)


def _point(group: PositionGroup | None, k: int) -> PositionPoint | None:
    return group.positions[k - 1] if group and k <= len(group.positions) else None


def _series(
    server: Target,
    points: Sequence[PositionPoint | None],
    groups: Sequence[PositionGroup | None],
    idle: Sequence[bool],
    field: str,
    n_field: str,
    k: int,
) -> SignalSeries:
    def column(name: str) -> Floats:
        values = [None if point is None else getattr(point, name) for point in points]
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    n = column("offered") if n_field == "offered" else _cycles(groups)
    return SignalSeries(
        labels={"server": server.name, "position": str(k)},
        value=column(field),
        why=np.array([_why(*pair, field) for pair in zip(points, idle, strict=True)], dtype=np.uint8),
        n=n,
        lower=column(f"{field}_low"),
        upper=column(f"{field}_high"),
        requests=np.array([_requests(group) for group in groups], dtype=np.float64),
        evidence={"evidence": groups[-1].evidence if groups[-1] else ""},
    )


def _cycles(groups: Sequence[PositionGroup | None]) -> Floats:
    return np.array([np.nan if group is None else group.cycles for group in groups], dtype=np.float64)


def _requests(group: PositionGroup | None) -> float:
    return np.nan if group is None or group.requests is None else float(group.requests)


def _why(point: PositionPoint | None, is_idle: bool, field: str) -> Why:
    if point is None or getattr(point, field) is None:
        return Why.IDLE if is_idle else Why.NO_DATA
    return Why.FEW if point.is_few else Why.OK


POSITION_SIGNALS = (
    Signal(
        "acceptance.survival", "1", "Sₖ: share of cycles that accept at least k drafts.",
        _reader("survival", "cycles"), ("position",), "cycles", has_interval=True, page="/acceptance",
    ),
    Signal(
        "acceptance.conditional", "1", "αₖ: share of the k-th drafts accepted where all before were.",
        _reader("conditional", "offered"), ("position",), "cycles", has_interval=True, page="/acceptance",
    ),
)  # fmt: skip
