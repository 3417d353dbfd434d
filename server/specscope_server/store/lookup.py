"""Find servers and launches by the names and ids that callers use."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.targets import TargetNames, target_names
from specscope_server.models import Launch, Server


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
    query = (
        select(Launch)
        .where(Launch.server_id == server_id, Launch.first_seen_ms < to_ms, Launch.last_seen_ms >= from_ms)
        .order_by(Launch.first_seen_ms, Launch.id)
    )
    return list(session.scalars(query))


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
    if not (choice.isascii() and choice.isdigit() and len(choice) < 19):
        raise InvalidInput(
            f"launch={choice[:60]!r} is neither an id nor 'newest' nor 'all'; see /servers/NAME/launches"
        )
    launch = session.get(Launch, int(choice))
    if launch is None or launch.server_id != server_id:
        raise NotFound(
            f"this server has no launch {choice}; its launches are listed at /api/v1/servers/NAME/launches"
        )
    return [launch]


def names_of_launches(session: Session, launch_ids: Collection[int]) -> dict[int, TargetNames]:
    """Return launch id → the names of its models."""
    columns = (Launch.served_model_name, Launch.model, Launch.draft_model, Launch.version_source)
    found: dict[int, TargetNames] = {}
    wanted = sorted(launch_ids)
    for start in range(0, len(wanted), 500):
        ids = wanted[start : start + 500]
        for row in session.execute(select(Launch.id, *columns).where(Launch.id.in_(ids))):
            found[row[0]] = target_names(*row[1:])
    return found


def has_successor(session: Session, launch: Launch) -> bool:
    """Tell whether the server was launched again after this launch."""
    query = select(Launch.id).where(
        Launch.server_id == launch.server_id, Launch.first_seen_ms > launch.first_seen_ms
    )
    return session.scalar(query.limit(1)) is not None


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
