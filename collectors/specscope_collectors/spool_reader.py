"""Reads a spool's segments in order, without reading again what it has just read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from specscope_collectors.spool_files import Segment
from specscope_collectors.spool_memory import Waiting
from specscope_collectors.spool_records import (
    HEADER_BYTES,
    Damage,
    Kind,
    Stored,
    decode_entry,
    length_of,
    record_at,
    scan,
)


class Reader:
    """Remembers where the record after the last acknowledged one begins."""

    def __init__(self) -> None:
        self._place = (-1, 0)
        """(number of a segment, offset in it) before which all is acknowledged."""
        self._met = (-1, 0)
        """Where the last stretch of damage began."""
        self.damaged_bytes = 0
        """Met so far; each stretch is counted once."""

    def after(self, segments: Sequence[Segment], number: int) -> Iterator[Waiting]:
        """Yield the batches with higher numbers, oldest first."""
        for at, segment in enumerate(segments):
            if at + 1 < len(segments) and segments[at + 1].first <= number + 1:
                continue
            for stored in self._records(segment, number):
                entry = decode_entry(stored.payload) if stored.kind == Kind.BATCH else None
                if entry is not None and stored.number > number:
                    yield Waiting(stored.number, stored.time_ms, entry)

    def _records(self, segment: Segment, number: int) -> Iterator[Stored]:
        offset = self._place[1] if segment.first == self._place[0] else 0
        all_done = True
        try:
            descriptor = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # somebody took it away
            return
        try:
            while offset < segment.size:
                found = _read(descriptor, offset, segment.size)
                if isinstance(found, Stored):
                    all_done = all_done and (found.kind != Kind.BATCH or found.number <= number)
                    yield found
                else:
                    self._count(segment.first, offset, found)
                offset += found.end
                if all_done:
                    self._place = (segment.first, offset)
        finally:
            os.close(descriptor)

    def _count(self, segment: int, offset: int, damage: Damage) -> None:
        if (segment, offset) > self._met:
            self._met = (segment, offset)
            self.damaged_bytes += damage.end


def _read(descriptor: int, offset: int, size: int) -> Stored | Damage:
    """Return the record at the offset, or the damage; its ``end`` is relative to the offset."""
    header = os.pread(descriptor, min(HEADER_BYTES, size - offset), offset)
    length = length_of(header)
    if length is not None and offset + HEADER_BYTES + length <= size:
        found = record_at(header + os.pread(descriptor, length, offset + HEADER_BYTES), 0)
        if found is not None:
            return found
    rest = os.pread(descriptor, size - offset, offset)
    # A file that somebody cut shorter ends here.
    return next(iter(scan(rest)), Damage(0, size - offset)) if rest else Damage(0, size - offset)
