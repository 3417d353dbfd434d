"""Find servers and launches by the names and ids that callers use."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.targets import TargetNames, target_names
from specscope_server.models import Launch, Server
from specscope_server.store.chunks import chunks
from specscope_server.store.one_pass import OnePass, pass_of, remembered
from specscope_server.store.rollup import HOUR_MS

RECENT_MS = 2 * HOUR_MS
"""How far back one pass reads the launches of all servers at once."""


def server_by_name(session: Session, name: str) -> Server:
    """Return the server; raise `NotFound` with the nearest name that exists."""
    server = session.scalar(select(Server).where(Server.name == name))
    if server is None:
        known = session.scalars(select(Server.name).limit(1_000)).all()
        hint = did_you_mean(name, known) or (" No server has been seen yet." if not known else "")
        raise NotFound(f"there is no server {name[:100]!r}.{hint} The servers are listed at /api/v1/servers")
    return server


def launches_between(session: Session, server_id: int, from_ms: int, to_ms: int) -> list[Launch]:
    """Return the launches seen inside [from_ms, to_ms), oldest first."""
    recent = _recent(session, server_id, from_ms)
    if recent is not None:
        return [one for one in recent if one.first_seen_ms < to_ms and one.last_seen_ms >= from_ms]
    query = (
        select(Launch)
        .where(Launch.server_id == server_id, Launch.first_seen_ms < to_ms, Launch.last_seen_ms >= from_ms)
        .order_by(Launch.first_seen_ms, Launch.id)
    )
    return list(session.scalars(query))


def _recent(session: Session, server_id: int, from_ms: int) -> list[Launch] | None:
    """Return the launches of the last hours that a pass has read of all servers; None: read them yourself."""
    found = pass_of(session)
    if found is None or from_ms < found.now_ms - RECENT_MS or server_id not in found.server_ids:
        return None
    return recent_launches(session).get(server_id, [])


def recent_launches(session: Session) -> dict[int, list[Launch]]:
    """Return server id → launches of the last hours, oldest first, of all servers of the pass that is on."""
    found = pass_of(session)
    return {} if found is None else remembered(session, "launches", lambda: _read_recent(session, found))


def recent_ids(session: Session) -> list[int]:
    """Return the ids of those launches."""
    return [launch.id for launches in recent_launches(session).values() for launch in launches]


def _read_recent(session: Session, asked: OnePass) -> dict[int, list[Launch]]:
    begin_ms = asked.now_ms - RECENT_MS
    query = select(Launch).where(Launch.last_seen_ms >= begin_ms).order_by(Launch.first_seen_ms, Launch.id)
    launches: dict[int, list[Launch]] = {}
    for part in chunks(asked.server_ids):
        for launch in session.scalars(query.where(Launch.server_id.in_(part))):
            launches.setdefault(launch.server_id, []).append(launch)
    return launches


def choose_launches(
    session: Session, server_id: int, choice: str | None, from_ms: int, to_ms: int
) -> list[Launch]:
    """Return the launches meant by ``choice``: an id, ``newest`` in the range, or all in it (None,
    ``all``).
    """
    if choice in (None, "", "all", "newest"):
        found = launches_between(session, server_id, from_ms, to_ms)
        return found[-1:] if choice == "newest" else found
    assert choice is not None
    if not _is_id(choice):
        raise InvalidInput(
            f"launch={choice[:60]!r} is neither an id nor 'newest' nor 'all'; see /servers/NAME/launches"
        )
    launch = launch_by_id(session, choice)
    if launch is None or launch.server_id != server_id:
        raise NotFound(
            f"this server has no launch {choice}; its launches are listed at /api/v1/servers/NAME/launches"
        )
    return [launch]


def launch_by_id(session: Session, text: str) -> Launch | None:
    """Return the launch with the id that a caller wrote; None when there is none, or it is no id."""
    return session.get(Launch, int(text)) if _is_id(text) else None


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def newest_launches(session: Session, server_ids: Collection[int] | None = None) -> dict[int, Launch]:
    """Return server id → the launch that began last, of these servers (None: of all)."""
    place = func.row_number().over(
        partition_by=Launch.server_id, order_by=(Launch.first_seen_ms.desc(), Launch.id.desc())
    )
    ranked = select(Launch.id, place.label("place"))
    if server_ids is not None:
        ranked = ranked.where(Launch.server_id.in_(server_ids))
    first = ranked.subquery()
    query = select(Launch).join(first, first.c.id == Launch.id).where(first.c.place == 1)
    return {launch.server_id: launch for launch in session.scalars(query)}


def newest_launch(session: Session, server_id: int) -> Launch | None:
    """Return the launch of a server that began last."""
    return newest_launches(session, [server_id]).get(server_id)


def names_of_launches(session: Session, launch_ids: Collection[int]) -> dict[int, TargetNames]:
    """Return launch id → the names of its models."""
    columns = (Launch.served_model_name, Launch.model, Launch.draft_model, Launch.version_source)
    found: dict[int, TargetNames] = {}
    for part in chunks(sorted(launch_ids)):
        for row in session.execute(select(Launch.id, *columns).where(Launch.id.in_(part))):
            found[row[0]] = target_names(*row[1:])
    return found


def has_successor(session: Session, launch: Launch) -> bool:
    """Tell whether the server was launched again after this launch."""
    found = pass_of(session)
    if found is not None and launch.server_id in found.server_ids:
        newest = remembered(session, "newest launches", lambda: _newest_begins(session, found.server_ids))
        return newest.get(launch.server_id, 0) > launch.first_seen_ms
    query = select(Launch.id).where(
        Launch.server_id == launch.server_id, Launch.first_seen_ms > launch.first_seen_ms
    )
    return session.scalar(query.limit(1)) is not None


def _newest_begins(session: Session, server_ids: Sequence[int]) -> dict[int, int]:
    newest = select(Launch.server_id, func.max(Launch.first_seen_ms)).group_by(Launch.server_id)
    found: dict[int, int] = {}
    for part in chunks(server_ids):
        found |= dict(session.execute(newest.where(Launch.server_id.in_(part))).all())
    return found


def previous_launch(session: Session, launch: Launch) -> Launch | None:
    """Return the launch of the same server that came before this one."""
    query = (
        select(Launch)
        .where(
            Launch.server_id == launch.server_id,
            (Launch.first_seen_ms < launch.first_seen_ms)
            | ((Launch.first_seen_ms == launch.first_seen_ms) & (Launch.id < launch.id)),
        )
        .order_by(Launch.first_seen_ms.desc(), Launch.id.desc())
        .limit(1)
    )
    return session.scalar(query)
