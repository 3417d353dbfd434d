"""The files of a spool: a lock, segments, how far the server got. Everything that touches the disk.

==========================  ==========================================================================
``lock``                    held while a process uses the folder; its process id
``NUMBER.spool``            a segment; NUMBER is that of its first record
``acknowledged``            number of the last record that the server has: two slots, written in turn
``set-aside/``              batches that the server will never take, one file each
``status.json``             what `specscope collect --status` prints
==========================  ==========================================================================
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".spool"
TEMPORARY = ".making"
OURS = frozenset({"lock", "acknowledged", "set-aside", "status.json", "status.json.making"})
_SEGMENT = re.compile(r"(\d{20})\.spool")
_SLOT = struct.Struct("<QQI")
_SLOT_STEP = 512
"""Slots lie in sectors of their own, so that a write that is torn damages one of them only."""


class SpoolError(Exception):
    """The folder cannot be used; the message names it, the reason and the remedy."""


@dataclass(slots=True)
class Segment:
    """One file of records."""

    first: int
    """Number of its first batch."""
    path: Path
    size: int
    """Bytes that hold whole records."""


def open_folder(folder: Path) -> int:
    """Make the folder if need be, lock it, and return the lock's descriptor. Raises `SpoolError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SpoolError(
            f"the spool {folder} cannot be written: {error.strerror}; "
            "name another folder with --spool, or change its permissions"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise SpoolError(
            f"the spool {folder} is used by another process ({owner or 'unknown'}): "
            "stop that one, or name another folder with --spool"
        ) from None
    with contextlib.suppress(OSError):  # a full disk does not matter here
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def find_segments(folder: Path) -> tuple[list[Segment], list[str]]:
    """Return the segments in order, and the names of files that are none of ours. Leftovers are removed."""
    segments, foreign = [], []
    for path in sorted(folder.iterdir()):
        match = _SEGMENT.fullmatch(path.name)
        if match and path.is_file():
            segments.append(Segment(int(match[1]), path, path.stat().st_size))
        elif path.name.endswith(SUFFIX + TEMPORARY):
            path.unlink()
        elif path.name not in OURS:
            foreign.append(path.name)
    return segments, foreign


def make_segment(folder: Path, first: int, head: bytes) -> tuple[Segment, int]:
    """Make a segment that begins with ``head``, whole or not at all; return it open for writing."""
    path = folder / f"{first:020d}{SUFFIX}"
    making = path.with_name(path.name + TEMPORARY)
    descriptor = os.open(making, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, head)
        os.fsync(descriptor)
        making.rename(path)
        sync_folder(folder)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            making.unlink(missing_ok=True)
        raise
    return Segment(first, path, len(head)), descriptor


def sync_folder(folder: Path) -> None:
    """Make names durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything at the descriptor's place; raises OSError, and then a part may be there."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Acknowledged:
    """Number of the last record that the server has. A slot is overwritten in place: that needs no room."""

    def __init__(self, folder: Path) -> None:
        """Open; raises OSError when the file cannot be made. On a full disk it is made without room."""
        self._descriptor = os.open(folder / "acknowledged", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._descriptor).st_size < 2 * _SLOT_STEP:
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, bytes(2 * _SLOT_STEP), 0)
        slots = [self._read(place) for place in (0, 1)]
        self._turn, self.number = max(slots)

    def write(self, number: int) -> None:
        """Remember; raises OSError. Not synchronised: after a power cut the server is sent some again."""
        self._turn, self.number = self._turn + 1, number
        checked = _SLOT.pack(self._turn, number, 0)[:-4]
        data = _SLOT.pack(self._turn, number, zlib.crc32(checked))
        os.pwrite(self._descriptor, data, self._turn % 2 * _SLOT_STEP)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _read(self, place: int) -> tuple[int, int]:
        """Return (turn, number) of a slot; (0, 0) for an empty or torn one."""
        data = os.pread(self._descriptor, _SLOT.size, place * _SLOT_STEP)
        if len(data) < _SLOT.size:
            return 0, 0
        turn, number, crc = _SLOT.unpack(data)
        return (turn, number) if zlib.crc32(data[:-4]) == crc else (0, 0)
