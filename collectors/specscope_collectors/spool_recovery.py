"""What a spool knows after it was opened: where the collectors go on, and what was damaged.

The newest segment decides. It begins with the state of all collectors, and each record after that moves one
of them on. A torn end is what a killed process or a power cut leaves: the record was never pushed (segments
are synchronised first), so the collector simply goes on from the one before. Any other damage may hide a
record that was pushed. Then nobody can say where the collectors were: the spool becomes another instance,
whose collectors begin with a new baseline. What is still readable is pushed.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field

from specscope_collectors.spool_files import Segment
from specscope_collectors.spool_records import (
    CollectorState,
    Damage,
    Entry,
    Kind,
    State,
    Stored,
    decode_entry,
    decode_state,
    scan,
)


@dataclass(slots=True)
class Recovered:
    """Outcome of opening."""

    instance: str
    collectors: dict[str, CollectorState] = field(default_factory=dict)
    last: int = 0
    """Number of the last record that was found."""
    torn_bytes: int = 0
    """Cut off at the end."""
    lost_state: str = ""
    """Why the collectors begin anew; empty when they go on."""


def new_instance() -> str:
    """Return a name that no other spool has."""
    return secrets.token_hex(5)


def recover(segments: list[Segment], acknowledged: int) -> Recovered:
    """Read the newest segment that holds anything; segments without a record are taken off the list."""
    found = Recovered(new_instance())
    reason = ""
    while segments:
        newest = segments[-1]
        parts = list(scan(newest.path.read_bytes()))
        if any(isinstance(part, Stored) for part in parts):
            reason = _replay(found, newest, parts) or reason
            break
        segments.pop()  # no record in it: nothing of ours, or damaged beyond reading
        newest.path.rename(newest.path.with_suffix(".unreadable"))
        reason = f"{newest.path.name} holds no readable record"
    if not reason and segments and found.last < acknowledged:
        reason = "records that were pushed are missing"
    if reason:
        return Recovered(new_instance(), last=found.last, torn_bytes=found.torn_bytes, lost_state=reason)
    return found


def _replay(found: Recovered, segment: Segment, parts: list[Stored | Damage]) -> str:
    """Move the state on through a segment; return why it cannot be trusted, else ""."""
    if isinstance(parts[-1], Damage):
        torn = parts.pop()
        assert isinstance(torn, Damage)
        found.torn_bytes = torn.end - torn.start
        os.truncate(segment.path, torn.start)
        segment.size = torn.start
    numbers = [part.number for part in parts if isinstance(part, Stored) and part.kind == Kind.BATCH]
    found.last = max([segment.first - 1, *numbers])
    head = parts[0]
    state = decode_state(head.payload) if isinstance(head, Stored) and head.kind == Kind.STATE else None
    if state is None:
        return f"the state at the beginning of {segment.path.name} cannot be read"
    if any(isinstance(part, Damage) for part in parts):
        return f"{segment.path.name} is damaged in the middle"
    found.instance, found.collectors = state.instance, dict(state.collectors)
    for part in parts:
        if isinstance(part, Stored) and part.kind == Kind.BATCH:
            entry = decode_entry(part.payload)
            if entry is None:
                return f"record {part.number} in {segment.path.name} was written by another version"
            advance(found.collectors, entry, part.time_ms)
    return ""


def advance(collectors: dict[str, CollectorState], entry: Entry, time_ms: int) -> None:
    """Move one collector on; what a batch does not bring stays as it was."""
    before = collectors.get(entry.collector_id)
    launch_key, checkpoint = entry.launch_key, entry.checkpoint
    if before is not None:
        launch_key = before.launch_key if launch_key is None else launch_key
        checkpoint = before.checkpoint if checkpoint is None else checkpoint
    collectors[entry.collector_id] = CollectorState(
        entry.sequence, launch_key, checkpoint, entry.target, time_ms
    )


FORGET_AFTER_MS = 90 * 86_400_000


def snapshot(instance: str, collectors: dict[str, CollectorState], now_ms: int) -> State:
    """Return what the next segment begins with; collectors that are long gone are left out."""
    kept = {name: each for name, each in collectors.items() if now_ms - each.time_ms < FORGET_AFTER_MS}
    return State(instance, kept)
