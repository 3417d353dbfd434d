"""Where records wait while the disk takes none: bounded, the oldest go first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from specscope_collectors.spool_records import Entry


@dataclass(frozen=True, slots=True)
class Waiting:
    """One batch on its way to the server."""

    number: int
    time_ms: int
    entry: Entry


class Memory:
    """Not safe to use from several threads; the spool's lock is held."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size = 0
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        """Iterate from the oldest to the newest."""
        return iter(self._waiting)

    def add(self, waiting: Waiting) -> list[Waiting]:
        """Keep one and return those that had to go; the newest always stays."""
        self._waiting.append(waiting)
        self.size += _size(waiting)
        dropped = []
        while self.size > self.limit_bytes and len(self._waiting) > 1:
            dropped.append(self.pop())
        return dropped

    def pop(self) -> Waiting:
        """Take the oldest out."""
        waiting = self._waiting.popleft()
        self.size -= _size(waiting)
        return waiting

    def forget(self, number: int) -> None:
        """Drop what the server has."""
        while self._waiting and self._waiting[0].number <= number:
            self.pop()

    def first(self) -> Waiting:
        """Return the oldest."""
        return self._waiting[0]


def _size(waiting: Waiting) -> int:
    """Return bytes; a checkpoint matters only in the newest batch of its collector, but may be large."""
    return len(waiting.entry.body) + len(waiting.entry.checkpoint or b"") + 500
