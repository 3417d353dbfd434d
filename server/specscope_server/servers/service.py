"""Read servers and launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from specscope_server.kit.errors import NotFound
from specscope_server.kit.health import SourceView, overall_state
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.versions import version_text
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Launch, Server, SourceStatus
from specscope_server.models.server import is_collector
from specscope_server.servers.schemas import (
    ConfigChange,
    LaunchDetail,
    LaunchDiff,
    LaunchItem,
    LaunchList,
    ServerItem,
    ServerList,
)
from specscope_server.servers.statistics import config_diff
from specscope_server.store.lookup import (
    launches_between,
    newest_launches,
    previous_launch,
    server_by_name,
)

_COPIED = [name for name in LaunchItem.model_fields if name not in ("server", "first_seen", "last_seen")]


def list_servers(
    session: Session, now_ms: int, stale_after_ms: int, limit: int, cursor: str | None
) -> ServerList:
    """Return one page of servers by name."""
    after = decode_cursor(cursor, (str,))
    query = select(Server).where(~is_collector()).order_by(Server.name).limit(limit + 1)
    if after:
        query = query.where(Server.name > after[0])
    found = list(session.scalars(query))
    page = found[:limit]
    items = _server_items(session, page, now_ms, stale_after_ms)
    return ServerList(
        servers=items, next_cursor=encode_cursor([page[-1].name]) if len(found) > limit else None
    )


def get_server(session: Session, name: str, now_ms: int, stale_after_ms: int) -> ServerItem:
    """Return one server; raise `NotFound`."""
    return _server_items(session, [server_by_name(session, name)], now_ms, stale_after_ms)[0]


def list_launches(session: Session, name: str, limit: int, cursor: str | None) -> LaunchList:
    """Return one page of a server's launches, newest first."""
    server = server_by_name(session, name)
    query = select(Launch).where(Launch.server_id == server.id)
    after = decode_cursor(cursor, (int, int))
    if after:
        query = query.where(tuple_(Launch.first_seen_ms, Launch.id) < tuple_(*after))
    found = list(
        session.scalars(query.order_by(Launch.first_seen_ms.desc(), Launch.id.desc()).limit(limit + 1))
    )
    page = found[:limit]
    more = encode_cursor([page[-1].first_seen_ms, page[-1].id]) if len(found) > limit else None
    return LaunchList(server=name, launches=[launch_item(row, name) for row in page], next_cursor=more)


def count_launches(session: Session, name: str, window: Window) -> int:
    """Return how many launches a server had in ``window``."""
    server = server_by_name(session, name)
    return len(launches_between(session, server.id, window.from_ms, window.to_ms))


def get_launch(session: Session, launch_id: int) -> LaunchDetail:
    """Return one launch with what differs from the one before; raise `NotFound`."""
    launch = session.get(Launch, launch_id)
    if launch is None:
        raise NotFound(
            f"there is no launch {launch_id}; launches are listed at /api/v1/servers/NAME/launches"
        )
    server = session.get_one(Server, launch.server_id)
    return LaunchDetail(
        launch=launch_item(launch, server.name),
        environment=orjson.loads(launch.environment),
        config=orjson.loads(launch.config),
        diff=_diff(previous_launch(session, launch), launch),
    )


def launch_item(launch: Launch, server: str) -> LaunchItem:
    """Return a launch as the API shows it."""
    copied: dict[str, Any] = {name: getattr(launch, name) for name in _COPIED}
    return LaunchItem(
        server=server,
        first_seen=to_iso(launch.first_seen_ms),
        last_seen=to_iso(launch.last_seen_ms),
        **copied,
    )


def _diff(previous: Launch | None, launch: Launch) -> LaunchDiff:
    if previous is None:
        return LaunchDiff(previous_id=None, added=[], removed=[], changed=[])
    added, removed, changed = config_diff(_comparable(previous), _comparable(launch))
    return LaunchDiff(
        previous_id=previous.id,
        added=[ConfigChange(key=key, before=None, after=value) for key, value in added.items()],
        removed=[ConfigChange(key=key, before=value, after=None) for key, value in removed.items()],
        changed=[ConfigChange(key=key, before=old, after=new) for key, (old, new) in changed.items()],
    )


def _comparable(launch: Launch) -> dict[str, Any]:
    environment = {f"env.{key}": value for key, value in orjson.loads(launch.environment).items()}
    version = version_text(launch.engine_version, launch.version_source)
    return {"engine_version": version, **orjson.loads(launch.config), **environment}


def _server_items(
    session: Session, servers: Sequence[Server], now_ms: int, stale_after_ms: int
) -> list[ServerItem]:
    ids = [server.id for server in servers]
    sources: dict[int, list[SourceView]] = {}
    for status in session.scalars(select(SourceStatus).where(SourceStatus.server_id.in_(ids))):
        sources.setdefault(status.server_id, []).append(SourceView(status.state, status.time_ms))
    counts = dict(
        session.execute(
            select(Launch.server_id, func.count()).where(Launch.server_id.in_(ids)).group_by(Launch.server_id)
        ).all()
    )
    newest = newest_launches(session, ids)
    items = []
    for server in servers:
        launch = newest.get(server.id)
        items.append(
            ServerItem(
                name=server.name,
                base_url=server.base_url,
                created=to_iso(server.created_ms),
                last_seen=to_iso(server.last_seen_ms),
                age_seconds=(now_ms - server.last_seen_ms) / 1_000,
                state=overall_state(sources.get(server.id, []), now_ms, stale_after_ms),
                launches=counts.get(server.id, 0),
                newest_launch=launch_item(launch, server.name) if launch else None,
                is_demo=bool(launch and launch.is_demo),
            )
        )
    return items
