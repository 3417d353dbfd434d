"""Read the health of sources."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.health import SourceView, overall_state
from specscope_server.kit.ranks import expected_ranks, reporting_ranks
from specscope_server.kit.timeparse import iso_or_none, to_iso
from specscope_server.models import Latest, Launch, Series, Server, SourceStatus
from specscope_server.sources.schemas import RanksItem, ServerSources, SourceItem, SourceList
from specscope_server.store.lookup import newest_launch, server_by_name

SCHEDULER_METRICS = ("requests.running", "throughput.generated", "spec.accept_length")
"""Metrics that each scheduler writes for itself: they show which ranks report."""


def list_sources(session: Session, name: str | None, now_ms: int, stale_after_ms: int) -> SourceList:
    """Return the sources of one server, or of all of them by name."""
    query = select(Server).order_by(Server.name)
    servers = [server_by_name(session, name)] if name else list(session.scalars(query))
    return SourceList(servers=[_server(session, server, now_ms, stale_after_ms) for server in servers])


def _server(session: Session, server: Server, now_ms: int, stale_after_ms: int) -> ServerSources:
    query = select(SourceStatus).where(SourceStatus.server_id == server.id).order_by(SourceStatus.source)
    statuses = list(session.scalars(query))
    views = [SourceView(status.state, status.time_ms) for status in statuses]
    launch = newest_launch(session, server.id)
    return ServerSources(
        server=server.name,
        base_url=server.base_url,
        state=overall_state(views, now_ms, stale_after_ms),
        is_demo=bool(launch and launch.is_demo),
        ranks=_ranks(session, launch, stale_after_ms),
        sources=[_item(status, server.name, now_ms) for status in statuses],
    )


def _ranks(session: Session, launch: Launch | None, stale_after_ms: int) -> RanksItem:
    if launch is None:
        return RanksItem(reporting=0, expected=None, note="no launch has been seen yet")
    query = (
        select(Series.labels)
        .join(Latest, Latest.series_id == Series.id)
        .where(Series.launch_id == launch.id, Series.metric.in_(SCHEDULER_METRICS))
        .where(Latest.time_ms > launch.last_seen_ms - stale_after_ms)
    )
    label_sets = [orjson.loads(text) for text in session.scalars(query)]
    expected = expected_ranks(launch.dp_size, launch.pp_size)
    reporting = reporting_ranks(label_sets)
    return RanksItem(
        reporting=reporting, expected=expected, note=_ranks_note(label_sets, reporting, expected)
    )


def _ranks_note(label_sets: Sequence[dict[str, str]], reporting: int, expected: int | None) -> str:
    if expected is None or reporting >= expected or not label_sets:
        return ""
    if not any("tp_rank" in labels for labels in label_sets):
        return (
            "this engine version writes no rank labels: "
            "all data-parallel ranks share one series, and the last writer wins"
        )
    return f"{expected - reporting} of {expected} rank groups (data-parallel × pipeline) have not reported"


def _item(status: SourceStatus, server: str, now_ms: int) -> SourceItem:
    return SourceItem(
        server=server,
        source=status.source,
        state=status.state,
        since=to_iso(status.since_ms),
        time=to_iso(status.time_ms),
        age_seconds=(now_ms - status.time_ms) / 1_000,
        last_good=iso_or_none(status.last_good_ms),
        url=status.url,
        http_status=status.http_status,
        duration_seconds=status.duration_seconds,
        body_bytes=status.body_bytes,
        series=status.series,
        refused=status.refused,
        detail=status.detail,
        remedy=status.remedy,
        missing=orjson.loads(status.missing),
    )
