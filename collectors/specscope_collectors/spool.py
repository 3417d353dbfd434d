"""The spool: batches wait on this machine's disk until the server has them.

`append` returns when the batch is in a file of the operating system: a killed process loses nothing. What
a power cut may lose are the batches since the last `synchronise` (a second or so), and with them the state of
their collectors, so that growth is measured again and is not lost either. Nothing is pushed before it is
synchronised.

The folder is bounded; when it is full the oldest segment goes. While the disk takes nothing, batches wait in
memory, bounded too. Whatever is lost is a `Notice`, which the sink turns into an event.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog
import zstandard

from specscope_collectors.clock import Clock, Monotonic, system_clock
from specscope_collectors.observations import Batch, Resume
from specscope_collectors.spool_disk import Disk
from specscope_collectors.spool_files import SpoolError, open_folder
from specscope_collectors.spool_memory import Memory, Waiting
from specscope_collectors.spool_notices import Losses, Notice
from specscope_collectors.spool_records import CollectorState, Entry
from specscope_collectors.spool_recovery import advance

MIB = 1024 * 1024
RETRY_DISK_SECONDS = 5.0
TELL_EVERY_SECONDS = 60.0
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
log = structlog.get_logger("specscope.spool")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolLimits:
    """How much may wait."""

    max_bytes: int = 2048 * MIB
    """Of all segments; the oldest is dropped when they are more."""
    segment_bytes: int = 8 * MIB
    memory_bytes: int = 32 * MIB
    """Of batches that wait in memory while the disk takes nothing."""

    @property
    def roll_bytes(self) -> int:
        """Size at which a new segment begins: several fit, so that only a part is dropped."""
        return min(self.segment_bytes, self.max_bytes // 8)


@dataclass(slots=True)
class Counts:
    """Since this process began."""

    appended: int = 0
    dropped: int = 0
    set_aside: int = 0


class Spool:
    """A folder of batches. Safe to use from several threads; one process at a time."""

    def __init__(
        self,
        folder: Path,
        limits: SpoolLimits | None = None,
        clock: Clock = system_clock,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        """Open and recover. Raises `SpoolError` when the folder is in use or cannot be written."""
        self.folder, self.limits, self.counts = folder, limits or SpoolLimits(), Counts()
        self.problem = ""
        """Why batches wait in memory; empty while the disk takes them."""
        self._clock, self._monotonic = clock, monotonic
        self._lock = threading.RLock()
        self._local = threading.local()
        self._notices: list[Notice] = []
        self._losses = Losses(monotonic)
        self._memory = Memory(self.limits.memory_bytes)
        self._retry_at = 0.0
        self._told_at: dict[str, float] = {}
        self._lock_file = open_folder(folder)
        try:
            self._disk = Disk(folder, self.limits.max_bytes, self.limits.roll_bytes, clock)
            self._begin()
        except OSError as error:
            os.close(self._lock_file)
            raise SpoolError(
                f"the spool {folder} cannot be used: {error.strerror or error}; change its permissions, or "
                "name another folder with --spool"
            ) from None

    def _begin(self) -> None:
        disk, found = self._disk, self._disk.found
        self.instance = found.instance
        self._collectors: dict[str, CollectorState] = dict(disk.collectors)
        self._next = self.first_fresh = max(found.last, disk.acknowledged) + 1
        if disk.foreign:
            log.warning("files in the spool that are none of ours", files=disk.foreign[:10])
        if found.torn_bytes:
            log.info("a torn end was cut off the spool", bytes=found.torn_bytes)
        if found.lost_state:
            message = f"the spool was damaged: {found.lost_state}; collectors begin with a new baseline"
            self.note(Notice("spool_damaged", message))
        try:
            disk.roll(self._next)
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._to_memory(error)

    # What collectors do

    def resume(self, collector_id: str) -> Resume:
        """Return where a collector left off."""
        with self._lock:
            known = self._collectors.get(collector_id)
        if known is None:
            return Resume()
        return Resume(sequence=known.sequence, checkpoint=known.checkpoint, launch_key=known.launch_key)

    def append(self, batch: Batch) -> bool:
        """Keep a batch until the server has it; False when its sequence was there before."""
        body = self._body(batch)
        names = (batch.collector_id, batch.sequence, batch.launch_key, batch.target)
        entry = Entry(*names, batch.checkpoint, body)
        with self._lock:
            known = self._collectors.get(batch.collector_id)
            if known is not None and batch.sequence <= known.sequence:
                return False
            waiting = Waiting(self._next, self._clock(), entry)
            self._next += 1
            self.counts.appended += 1
            self._keep(waiting)
            advance(self._collectors, entry, waiting.time_ms)
        return True

    def name_at_server(self, collector_id: str) -> str:
        """Return the id of a collector as the server knows it."""
        return f"{collector_id}#{self.instance}"

    def jump(self, name_at_server: str, sequence: int) -> None:
        """Let a collector go on after a sequence that the server has already: its next batch is refused, and
        it resumes with this one.
        """
        collector_id, _, instance = name_at_server.rpartition("#")
        with self._lock:
            known = self._collectors.get(collector_id)
            if instance == self.instance and known is not None and known.sequence < sequence:
                self._collectors[collector_id] = msgspec.structs.replace(known, sequence=sequence)

    def note(self, notice: Notice) -> None:
        """Add a notice."""
        server = {"server": notice.target.name} if notice.target else {}
        log.error(notice.message, kind=notice.kind, **server)
        with self._lock:
            self._notices.append(notice)

    def take_notices(self, *, at_once: bool = False) -> list[Notice]:
        """Return what is new since the last call; losses are gathered for a while, unless ``at_once``."""
        with self._lock:
            for notice in self._losses.take(at_once=at_once):
                self.note(notice)
            taken, self._notices = self._notices, []
        return taken

    def _body(self, batch: Batch) -> bytes:
        name = self.name_at_server(batch.collector_id)
        sent = msgspec.structs.replace(batch, collector_id=name, checkpoint=None)
        return self.compress(msgspec.msgpack.encode(sent))

    def compress(self, data: bytes) -> bytes:
        """Return one zstd frame that says its size."""
        if not hasattr(self._local, "compressor"):
            self._local.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        packed: bytes = self._local.compressor.compress(data)
        return packed

    # Disk or memory

    def _keep(self, waiting: Waiting) -> None:
        if not self.problem or self._monotonic() >= self._retry_at:
            try:
                self._write(waiting)
            except OSError as error:
                self._to_memory(error)
            else:
                return
        self._count_dropped(self._memory.add(waiting), "the memory for it is full")

    def _write(self, waiting: Waiting | None = None) -> None:
        """Bring what waits in memory to the disk, then this batch. Raises OSError."""
        while self._memory:
            self._disk.write(self._memory.first())
            self._memory.pop()
            self._drop_oldest()
        if waiting is not None:
            self._disk.write(waiting)
            self._drop_oldest()
        if self.problem:
            self.problem = ""
            self._tell_trouble("spool_on_disk", f"the spool {self.folder} takes batches again")

    def _drop_oldest(self) -> None:
        while self._disk.over_limit():
            self._count_dropped(self._disk.drop_oldest(), "the spool is full")

    def _to_memory(self, error: OSError) -> None:
        self._retry_at = self._monotonic() + RETRY_DISK_SECONDS
        before, self.problem = self.problem, error.strerror or str(error)
        if not before:
            advice = "batches wait in memory only; make room"
            message = f"the spool {self.folder} takes nothing ({self.problem}): {advice}"
            self._tell_trouble("spool_in_memory", message)

    def _tell_trouble(self, kind: str, message: str) -> None:
        """Add a notice, but not one after the other when small batches find room and large ones do not."""
        now = self._monotonic()
        if self._told_at.get(kind, now - TELL_EVERY_SECONDS) <= now - TELL_EVERY_SECONDS:
            self._told_at[kind] = now
            self.note(Notice(kind, message))

    def _count_dropped(self, dropped: Sequence[Waiting], why: str) -> None:
        self.counts.dropped += len(dropped)
        self._losses.add(dropped, why)

    # What the pusher does

    def waiting(self, most: int, most_bytes: int) -> list[Waiting]:
        """Return the oldest batches that are not acknowledged; one at least, if there is any.

        Raises OSError when they cannot be read.
        """
        found: list[Waiting] = []
        size = 0
        with self._lock:
            for each in itertools.islice(self._all_waiting(), most):
                size += len(each.entry.body)
                if found and size > most_bytes:
                    break
                found.append(each)
        return found

    def _all_waiting(self) -> Iterator[Waiting]:
        yield from self._disk.waiting()
        yield from self._memory

    def synchronise(self) -> None:
        """Bring what was written to the disk itself, and mend what was removed there. Raises OSError."""
        with self._lock:
            was_mended, lost = self._disk.mend()
            if was_mended or lost:
                self.counts.dropped += lost
                message = f"somebody removed files of the spool {self.folder} while it was in use: "
                message += f"{lost} batches are lost, the newest were written anew"
                self.note(Notice("spool_damaged", message, detail={"batches": lost}))
            self._disk.synchronise()

    def acknowledge(self, number: int) -> None:
        """Forget what the server has: everything up to this number."""
        with self._lock:
            self._disk.acknowledge(number)
            self._memory.forget(number)

    @property
    def count(self) -> int:
        """Batches that wait (those that were damaged, too, until they are passed)."""
        with self._lock:
            return self._next - 1 - self._disk.acknowledged

    @property
    def in_memory(self) -> int:
        """Batches that wait in memory only."""
        with self._lock:
            return len(self._memory)

    @property
    def size(self) -> int:
        """Bytes on disk, what collectors need to go on included."""
        with self._lock:
            return self._disk.size

    @property
    def damaged_bytes(self) -> int:
        """Bytes in segments that could not be read."""
        return self._disk.reader.damaged_bytes

    def close(self) -> None:
        """Bring everything to the disk, and let another process in."""
        with self._lock:
            with contextlib.suppress(OSError):
                self._write()
            self._disk.close()
            os.close(self._lock_file)
