"""Store finished requests that clients report: each once, and under the launch in force when it finished."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, select, update

from specscope_collectors.observations import Launch as LaunchRecord
from specscope_collectors.observations import RequestRecord, SpeculativeConfig, Target
from specscope_server.models import Launch, Request, Server
from specscope_server.store import dialects
from specscope_server.store.activity_writer import request_reason, write_requests
from specscope_server.store.chunks import chunks
from specscope_server.store.engine import write_transaction
from specscope_server.store.identity import UNKNOWN_ENGINE, upsert_launch, upsert_server
from specscope_server.store.refusal import Reason

UNSEEN = "requests"
"""Key, and start of the keys, of launches that only request records speak of."""

UNWATCHED = "reported requests"
"""Base URL of a server that is known from its requests alone; watching it under its name gives it one."""


@dataclass(slots=True)
class Stored:
    """What became of the records; ``refused`` maps their place to the reason."""

    accepted: int = 0
    duplicates: int = 0
    without_counts: int = 0
    """Accepted records that say nothing about speculation."""
    refused: dict[int, Reason] = field(default_factory=dict)


def store_requests(
    engine: Engine, server: str, records: Sequence[RequestRecord], *, now_ms: int, oldest_ms: int
) -> Stored:
    """Store the records in one transaction; a server that is not known is made.

    A record with an id that the server has already is a duplicate and changes nothing.
    """
    stored = Stored()
    good: dict[str, RequestRecord] = {}
    for index, record in enumerate(records):
        reason = request_reason(record, oldest_ms, now_ms)
        if reason is not None:
            stored.refused[index] = reason
        elif record.request_id in good:
            stored.duplicates += 1
        else:
            good[record.request_id] = record
    with write_transaction(engine) as connection:
        dialects.lock_server(connection, server)
        server_id = _server_id(connection, server, now_ms)
        known = _known_ids(connection, server_id, list(good))
        fresh = [record for name, record in good.items() if name not in known]
        place_requests(connection, server_id, fresh)
    stored.accepted, stored.duplicates = len(fresh), stored.duplicates + len(known)
    stored.without_counts = sum(record.verify_calls is None for record in fresh)
    return stored


def _server_id(connection: Connection, name: str, now_ms: int) -> int:
    found = connection.execute(select(Server.id).where(Server.name == name)).scalar_one_or_none()
    if found is not None:
        return found
    return upsert_server(connection, Target(name=name, base_url=UNWATCHED), now_ms)


def _known_ids(connection: Connection, server_id: int, names: list[str]) -> set[str]:
    found: set[str] = set()
    for part in chunks(names):
        query = select(Request.request_id).where(Request.server_id == server_id, Request.request_id.in_(part))
        found.update(connection.execute(query).scalars())
    return found


def place_requests(connection: Connection, server_id: int, records: Sequence[RequestRecord]) -> None:
    """Add finished requests, each under the launch in force when it finished; known ones change nothing."""
    by_launch: dict[int, list[RequestRecord]] = {}
    seen = _seen_launches(connection, server_id)
    starts = [row.first_seen_ms for row in seen]
    unseen: dict[int | None, list[RequestRecord]] = {}
    for record in records:
        place = bisect_right(starts, record.time_ms)
        if place:
            by_launch.setdefault(seen[place - 1].id, []).append(record)
        else:
            unseen.setdefault(draft_tokens_of(record), []).append(record)
    for draft_tokens, group in unseen.items():
        by_launch[_unseen_launch(connection, server_id, draft_tokens, group)] = group
    for launch_id, group in by_launch.items():
        write_requests(connection, server_id, launch_id, group)
        _touch(connection, server_id, launch_id, max(record.time_ms for record in group))


def _seen_launches(connection: Connection, server_id: int) -> list[Any]:
    """Return (id, first seen) of the launches that a collector saw, oldest first."""
    query = (
        select(Launch.id, Launch.first_seen_ms)
        .where(Launch.server_id == server_id, Launch.key.not_like(f"{UNSEEN}%"))
        .order_by(Launch.first_seen_ms, Launch.id)
    )
    return list(connection.execute(query))


def draft_tokens_of(record: RequestRecord) -> int | None:
    """Return D: one more than the drafts that each cycle proposed; None if that is not known or varied."""
    calls, proposed = record.verify_calls, record.proposed_drafts
    if not calls or proposed is None or proposed % calls:
        return None
    width = proposed // calls
    longest = len(record.accepted_histogram or ()) - 1
    return width + 1 if longest <= width else None


def _unseen_launch(
    connection: Connection, server_id: int, draft_tokens: int | None, records: Sequence[RequestRecord]
) -> int:
    """Return the launch of requests that finished before any launch was seen: one for each D."""
    record = LaunchRecord(
        key=UNSEEN if draft_tokens is None else f"{UNSEEN}-d{draft_tokens}",
        time_ms=min(record.time_ms for record in records),
        engine=UNKNOWN_ENGINE,
        reason="known from its requests only: nobody watched the server when they finished",
        speculative=SpeculativeConfig(num_draft_tokens=draft_tokens),
    )
    return upsert_launch(connection, server_id, record)


def _touch(connection: Connection, server_id: int, launch_id: int, time_ms: int) -> None:
    """Move the times last seen forward: a request that finished shows that the launch ran."""
    for table, row_id in ((Launch, launch_id), (Server, server_id)):
        connection.execute(
            update(table).where(table.id == row_id, table.last_seen_ms < time_ms).values(last_seen_ms=time_ms)
        )
