"""The part of a spool that lies on disk. Not safe to use from several threads; the spool's lock is held."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from specscope_collectors.clock import Clock
from specscope_collectors.spool_files import (
    Acknowledged,
    Segment,
    find_segments,
    make_segment,
    write_all,
)
from specscope_collectors.spool_memory import Waiting
from specscope_collectors.spool_reader import Reader
from specscope_collectors.spool_records import CollectorState, Kind, frame
from specscope_collectors.spool_recovery import Recovered, advance, recover, snapshot


class Disk:
    """Segments, and where collectors go on as far as these say."""

    def __init__(self, folder: Path, max_bytes: int, roll_bytes: int, clock: Clock) -> None:
        """Recover what is there. Raises OSError."""
        self._folder, self._max_bytes, self._roll_bytes, self._clock = folder, max_bytes, roll_bytes, clock
        self.segments, self.foreign = find_segments(folder)
        self._acknowledged = Acknowledged(folder)
        self.acknowledged = self._acknowledged.number
        self.found: Recovered = recover(self.segments, self.acknowledged)
        self.instance = self.found.instance
        self.collectors: dict[str, CollectorState] = self.found.collectors
        self.reader = Reader()
        self._descriptor = -1
        self._is_dirty = False

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def write(self, waiting: Waiting) -> None:
        """Append a batch to the newest segment, whole or not at all. Raises OSError."""
        if self._descriptor < 0 or self.segments[-1].size >= self._roll_bytes:
            self.roll(waiting.number)
        data = frame(Kind.BATCH, waiting.number, waiting.time_ms, msgspec.msgpack.encode(waiting.entry))
        segment = self.segments[-1]
        try:
            write_all(self._descriptor, data)
        except OSError:
            self._cut_off(segment)
            raise
        segment.size += len(data)
        self._is_dirty = True
        advance(self.collectors, waiting.entry, waiting.time_ms)

    def roll(self, number: int) -> None:
        """Begin a segment with this number; the one before is complete and synchronised. Raises OSError."""
        self.synchronise()
        state = snapshot(self.instance, self.collectors, self._clock())
        head = frame(Kind.STATE, number, self._clock(), msgspec.msgpack.encode(state))
        segment, descriptor = make_segment(self._folder, number, head)
        if self.segments and self.segments[-1].first == number:
            self.segments.pop()  # it held no batch, and its file was replaced
        self.segments.append(segment)
        self._close_segment()
        self._descriptor = descriptor

    def synchronise(self) -> None:
        """Bring what was written to the disk itself. Raises OSError."""
        if self._is_dirty:
            os.fsync(self._descriptor)
            self._is_dirty = False

    def mend(self) -> tuple[bool, int]:
        """Look whether somebody removed files under us. Raises OSError.

        The newest segment is open, so that what it holds is not gone: it is written anew. Return whether it
        was, and how many batches were lost with older ones.
        """
        lost = self._forget_removed()
        if self._descriptor < 0 or os.fstat(self._descriptor).st_nlink:
            return False, lost
        newest = self.segments[-1]
        self._folder.mkdir(parents=True, exist_ok=True)
        content = os.pread(self._descriptor, newest.size, 0)
        self.segments[-1], descriptor = make_segment(self._folder, newest.first, content)
        self._close_segment()
        self._descriptor = descriptor
        return True, lost

    def _forget_removed(self) -> int:
        """Take older segments off the list that are gone, and return how many batches of them were needed."""
        lost = 0
        for segment, after in zip(self.segments[:-1], self.segments[1:], strict=True):
            if not segment.path.exists():
                lost += max(0, after.first - max(segment.first, self.acknowledged + 1))
                self.segments.remove(segment)
        return lost

    def over_limit(self) -> bool:
        """Whether the oldest segment has to go."""
        return self.size > self._max_bytes and len(self.segments) > 1

    def drop_oldest(self) -> list[Waiting]:
        """Remove the oldest segment and return what of it was not acknowledged."""
        victim, rest = self.segments[0], self.segments[1:]
        lost = list(self.reader.after([victim], self.acknowledged))
        self.acknowledge(max(self.acknowledged, rest[0].first - 1))
        return lost

    def acknowledge(self, number: int) -> None:
        """Remember that the server has everything up to this number, and remove segments of such only."""
        self.acknowledged = max(self.acknowledged, number)
        with contextlib.suppress(OSError):  # then the server is sent some again after a restart
            self._acknowledged.write(self.acknowledged)
        while len(self.segments) > 1 and self.segments[1].first <= self.acknowledged + 1:
            with contextlib.suppress(OSError):  # it is removed by the next process then
                self.segments[0].path.unlink(missing_ok=True)
            self.segments.pop(0)

    def waiting(self) -> Iterator[Waiting]:
        """Yield what is not acknowledged, oldest first. Raises OSError."""
        return self.reader.after(self.segments, self.acknowledged)

    def close(self) -> None:
        """Synchronise and close."""
        with contextlib.suppress(OSError):
            self.synchronise()
        self._close_segment()
        self._acknowledged.close()

    def _cut_off(self, segment: Segment) -> None:
        try:
            os.ftruncate(self._descriptor, segment.size)
            os.lseek(self._descriptor, segment.size, os.SEEK_SET)
        except OSError:
            self._close_segment()  # a part of a record stays behind; the reader skips it

    def _close_segment(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
