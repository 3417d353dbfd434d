"""What surrounds an alert: which model the server runs, and what changed just before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_collectors.observations import START_EVIDENCE
from specscope_server.alerts.channels.notification import CardChange
from specscope_server.models import Event, Launch, Server
from specscope_server.servers.statistics import config_diff
from specscope_server.store.lookup import newest_launch, previous_launch

LOOK_BACK_MS = 3_600_000
"""A change is "just before" when it is at most this much older than the first breach."""
MAX_CHANGES = 10
NO_CHANGES = ("launch", "state_capture", "state_rows", "capture", "boundaries")
"""Kinds of events that are observations, not changes; launches are told with what differs."""
OF_LAUNCHES = ("restart", "config_change")
SAME_MS = 60_000
"""A restart that was noted this near to a launch is that launch."""
MAX_TEXT = 200
MAX_KEYS = 5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Of one server at one time."""

    model: str = ""
    is_demo: bool = False
    changes: list[CardChange] = field(default_factory=list)


def surroundings_of(session: Session, server_name: str, at_ms: int, now_ms: int) -> Surroundings:
    """Return what is known; nothing for a server that is not (any more)."""
    server = session.scalar(select(Server).where(Server.name == server_name))
    if server is None:
        return Surroundings()
    launch = newest_launch(session, server.id)
    launches = _launches(session, server.id, at_ms, now_ms)
    changes = [*launches, *_events(session, server.id, at_ms, now_ms, launches)]
    newest = sorted(changes, key=lambda change: change.at_ms)[-MAX_CHANGES:]
    if launch is None:
        return Surroundings(changes=newest)
    return Surroundings(launch.served_model_name or launch.model or "", launch.is_demo, newest)


def _launches(session: Session, server_id: int, at_ms: int, now_ms: int) -> list[CardChange]:
    query = (
        select(Launch)
        .where(
            Launch.server_id == server_id,
            Launch.first_seen_ms > at_ms - LOOK_BACK_MS,
            Launch.first_seen_ms <= now_ms,
        )
        .order_by(Launch.first_seen_ms.desc())
        .limit(MAX_CHANGES)
    )
    found = []
    for launch in session.scalars(query):
        before = previous_launch(session, launch)
        if before is not None:  # the first that was ever seen changed nothing
            found.append(CardChange(launch.first_seen_ms, "launch", _difference(before, launch)))
    return found


def _difference(before: Launch, after: Launch) -> str:
    tells_variables = before.environment != "{}" and after.environment != "{}"
    old, new = (_settings(launch, with_variables=tells_variables) for launch in (before, after))
    added, removed, changed = config_diff(old, new)
    words = [f"{key} {_short(old)} → {_short(new)}" for key, (old, new) in changed.items()]
    words += [f"{key} = {_short(value)} (new)" for key, value in added.items()]
    words += [f"{key} is gone" for key in removed]
    if not words:
        return f"started again with the same configuration ({after.reason})"[:MAX_TEXT]
    more = f" and {len(words) - MAX_KEYS} more" if len(words) > MAX_KEYS else ""
    return ("; ".join(words[:MAX_KEYS]) + more)[: 2 * MAX_TEXT]


def _settings(launch: Launch, *, with_variables: bool) -> dict[str, Any]:
    """Return what was set, without what differs between any two starts."""
    config = {key: value for key, value in orjson.loads(launch.config).items() if key not in START_EVIDENCE}
    variables = orjson.loads(launch.environment) if with_variables else {}
    named = {f"env.{key}": value for key, value in variables.items()}
    return {"engine_version": launch.engine_version, **config, **named}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _events(
    session: Session, server_id: int, at_ms: int, now_ms: int, launches: Sequence[CardChange]
) -> list[CardChange]:
    """Return what was noted, but for what the launches say better."""
    query = (
        select(Event.time_ms, Event.kind, Event.message)
        .where(
            Event.server_id == server_id,
            Event.time_ms > at_ms - LOOK_BACK_MS,
            Event.time_ms <= now_ms,
            Event.kind.not_in(NO_CHANGES),
        )
        .order_by(Event.time_ms.desc())
        .limit(MAX_CHANGES)
    )  # fmt: skip
    found = [CardChange(row.time_ms, row.kind[:40], row.message[:MAX_TEXT]) for row in session.execute(query)]
    return [
        change
        for change in found
        if change.kind not in OF_LAUNCHES
        or all(abs(change.at_ms - launch.at_ms) > SAME_MS for launch in launches)
    ]
