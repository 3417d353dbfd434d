"""Windows of rows and requests: profiles of one launch, slot and phase, of all ranks, until there is enough.

They are put together from the newest backwards, from what is known of profiles without opening them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from specscope_collectors.states.rules import is_enough, is_full
from specscope_server.drift.reading import OTHER, Entry

MOST_PROFILES = 64
"""Profiles that one window is put together from; where that is not enough, there is not enough."""

Place = tuple[int | None, str, int]
"""Launch, phase, slot."""


@dataclass(slots=True)
class Plan:
    """Profiles that make one window."""

    launch_id: int | None
    phase: str
    slot: int
    entries: list[Entry] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, ...]:
        """Ids of its profiles, by which it is known."""
        return tuple(entry.id for entry in self.entries)

    @property
    def rows(self) -> int:
        """Rows of all profiles."""
        return sum(entry.rows for entry in self.entries)

    @property
    def requests(self) -> int:
        """Requests, at most: one that spans two profiles counts in both. How many there are at least is known
        once the profiles are opened, and decides whether the window may speak.
        """
        return sum(entry.requests for entry in self.entries)

    @property
    def from_ms(self) -> int:
        """Begin of the oldest profile."""
        return min(entry.from_ms for entry in self.entries)

    @property
    def to_ms(self) -> int:
        """End of the newest."""
        return max(entry.time_ms for entry in self.entries)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is added."""
        return is_full(self.rows, self.requests) or len(self.entries) >= MOST_PROFILES

    @property
    def boundary(self) -> int | None:
        """What the engine says it captured; None: it does not, or not the same all the time."""
        found = {entry.boundary for entry in self.entries}
        return found.pop() if len(found) == 1 else None


def plan_windows(entries: Iterable[Entry], most: int, row_class: str = OTHER) -> dict[Place, list[Plan]]:
    """Return the newest windows of each place, oldest first. ``entries`` come newest first.

    A last window that is not full is kept if it may speak, or if it is the only one of its place. Profiles
    of another hidden size, or of another boundary as the engine says, begin a window of their own.
    """
    found: dict[Place, list[Plan]] = {}
    for entry in entries:
        if entry.row_class != row_class:
            continue
        place = (entry.launch_id, entry.phase, entry.slot)
        plans = found.setdefault(place, [])
        if not plans or plans[-1].is_full or not _belongs(entry, plans[-1]):
            if len(plans) >= most:
                continue
            plans.append(Plan(*place))
        plans[-1].entries.append(entry)
    return {place: _kept(plans) for place, plans in found.items()}


def _belongs(entry: Entry, plan: Plan) -> bool:
    """Say whether a profile may be of the same states as those of a window."""
    told = {each.boundary for each in (*plan.entries, entry)} - {None}
    return plan.entries[0].hidden_size == entry.hidden_size and len(told) < 2


def _kept(plans: list[Plan]) -> list[Plan]:
    last = plans[-1]
    if len(plans) > 1 and not is_enough(last.rows, last.requests):
        plans = plans[:-1]
    return plans[::-1]


def newest_launch_of(entries: Sequence[Entry]) -> int | None:
    """Return the launch of the newest profile."""
    return entries[0].launch_id if entries else None
