"""Read serving profiles: first what they are of, and only of those that are used what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_collectors.observations import StateProfile as Record
from specscope_server.models import StateProfile
from specscope_server.store.chunks import chunks
from specscope_server.store.state_writer import read_body

SERVING_PHASES = ("prefill", "verify_accepted", "verify_rejected")
OTHER = "other"
MOST_ENTRIES = 4_000
"""Profiles whose kind is looked at for one answer."""
AT_ONCE = 64
"""Profiles that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a profile is of, without what is in it."""

    id: int
    time_ms: int
    span_ms: int
    launch_id: int | None
    phase: str
    row_class: str
    slot: int
    boundary: int | None
    hidden_size: int
    rows: int
    requests: int

    @property
    def from_ms(self) -> int:
        """Begin of the stretch that its rows are of."""
        return self.time_ms - self.span_ms


_COLUMNS = (
    StateProfile.id, StateProfile.time_ms, StateProfile.span_ms, StateProfile.launch_id, StateProfile.phase,
    StateProfile.row_class, StateProfile.slot, StateProfile.boundary, StateProfile.hidden_size,
    StateProfile.rows, StateProfile.requests,
)  # fmt: skip


def newest_entries(
    session: Session, server_id: int, from_ms: int, to_ms: int, launch_ids: Sequence[int] | None = None,
    most: int = MOST_ENTRIES,
) -> list[Entry]:  # fmt: skip
    """Return serving profiles of slots that end in ``(from_ms, to_ms]``, newest first."""
    query = (
        select(*_COLUMNS)
        .where(
            StateProfile.server_id == server_id, StateProfile.time_ms > from_ms,
            StateProfile.time_ms <= to_ms, StateProfile.slot.is_not(None),
            StateProfile.phase.in_(SERVING_PHASES),
        )
        .order_by(StateProfile.time_ms.desc(), StateProfile.id.desc())
        .limit(most)
    )  # fmt: skip
    if launch_ids is not None:
        query = query.where(StateProfile.launch_id.in_(launch_ids))
    return [Entry(*row) for row in session.execute(query)]  # type: ignore[arg-type]  # slot is not null


def newest_time(session: Session, server_id: int, from_ms: int, to_ms: int) -> int | None:
    """Return when the newest profile of any kind in the range ends; None: there is none."""
    query = select(func.max(StateProfile.time_ms)).where(
        StateProfile.server_id == server_id, StateProfile.time_ms > from_ms, StateProfile.time_ms <= to_ms
    )
    return session.scalar(query)


def bodies(session: Session, ids: Iterable[int]) -> dict[int, Record]:
    """Return what is in profiles, by id."""
    found: dict[int, Record] = {}
    for part in chunks(sorted(set(ids))):
        query = select(StateProfile.id, StateProfile.body).where(StateProfile.id.in_(part))
        found |= {number: read_body(body) for number, body in session.execute(query)}
    return found
