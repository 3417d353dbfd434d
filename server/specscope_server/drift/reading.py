"""Read serving profiles: first what they are of, and only of those that are used what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import zstandard
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from specscope_collectors.observations import StateProfile as Record
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import StateProfile
from specscope_server.store.chunks import chunks
from specscope_server.store.limits import BEGINNING_MS
from specscope_server.store.refusal import Reason
from specscope_server.store.state_writer import profile_reason, read_body

SERVING_PHASES = ("prefill", "verify_accepted", "verify_rejected")
OTHER = "other"
MOST_ENTRIES = 4_000
"""Profiles whose kind is looked at for one answer."""
WORDS = {Reason.BAD_PROFILE: "its sums or arrays do not agree with each other"}
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


@dataclass(frozen=True, slots=True)
class Bodies:
    """What is in profiles, by id, and why what is in others cannot be used."""

    records: dict[int, Record]
    unusable: dict[int, str]
    """In words, without the profile's name."""


def bodies(session: Session, ids: Iterable[int]) -> Bodies:
    """Return what is in profiles; an older version may have let some in that no check of today would."""
    found = Bodies({}, {})
    for part in chunks(sorted(set(ids))):
        query = select(StateProfile.id, StateProfile.hidden_size, StateProfile.body)
        for number, hidden_size, body in session.execute(query.where(StateProfile.id.in_(part))):
            record = _record(body, hidden_size)
            if isinstance(record, Record):
                found.records[number] = record
            else:
                found.unusable[number] = record
    return found


def named(entry: Entry, why: str) -> str:
    """Return why a profile cannot be used, as answers say it."""
    return (
        f"profile {entry.id} of slot {entry.slot}, {entry.phase}, {to_iso(entry.time_ms)}, cannot be used: "
        f"{why}"
    )


def _record(body: bytes, hidden_size: int) -> Record | str:
    try:
        record = read_body(body)
    except (zstandard.ZstdError, msgspec.MsgspecError, RecursionError):
        return "what is stored of it is damaged"
    reason = profile_reason(record, BEGINNING_MS, record.time_ms)
    if reason is not None:
        return WORDS.get(reason, f"its values cannot be ({reason})")
    if record.hidden_size != hidden_size:
        return f"it is of hidden size {record.hidden_size}, and was stored as of {hidden_size}"
    arrays = (record.direction_sum, record.direction_sum_of_squares, record.sum_of_squares,
              record.token_directions)  # fmt: skip
    if any(not np.isfinite(np.frombuffer(array, "<f4")).all() for array in arrays):
        return "it has sums that are not finite"
    return record
