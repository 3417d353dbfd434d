"""Read the health of sources."""

from __future__ import annotations

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.health import SourceView, overall_state
from specscope_server.kit.timeparse import iso_or_none, to_iso
from specscope_server.models import Launch, Server, SourceStatus
from specscope_server.models.server import COLLECTOR_URL, is_collector
from specscope_server.sources.probes import read_probes
from specscope_server.sources.schemas import RanksItem, ServerSources, SourceItem, SourceList
from specscope_server.sources.states import read_states
from specscope_server.store.coverage_reader import read_coverage
from specscope_server.store.lookup import newest_launch, server_by_name


def list_sources(session: Session, name: str | None, now_ms: int, stale_after_ms: int) -> SourceList:
    """Return the sources of one server, or of all of them by name."""
    query = select(Server).order_by(Server.name)
    servers = [server_by_name(session, name)] if name else list(session.scalars(query))
    return SourceList(servers=[_server(session, server, now_ms, stale_after_ms) for server in servers])


def list_collectors(session: Session, now_ms: int, stale_after_ms: int) -> list[ServerSources]:
    """Return what the collectors say of themselves: their files, discoveries and spools."""
    query = select(Server).where(is_collector()).order_by(Server.name)
    return [_server(session, row, now_ms, stale_after_ms) for row in session.scalars(query)]


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
        is_collector=server.base_url.startswith(COLLECTOR_URL),
        ranks=_ranks(session, launch, stale_after_ms),
        sources=[_item(status, server.name, now_ms) for status in statuses],
        probes=read_probes(session, launch, stale_after_ms),
        states=read_states(session, launch),
    )


def _ranks(session: Session, launch: Launch | None, stale_after_ms: int) -> RanksItem:
    if launch is None:
        return RanksItem(reporting=0, expected=None, missing=[], text="", note="no launch has been seen yet")
    found = read_coverage(session, launch, stale_after_ms)
    return RanksItem(
        reporting=found.reporting,
        expected=found.expected,
        missing=list(found.missing),
        text=found.text,
        note=found.note,
    )


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
