"""A place in a file, known again by what stands before it, whatever the file is called by then."""

from __future__ import annotations

import hashlib
from typing import Protocol

import msgspec

HEAD_BYTES, TAIL_BYTES = 1024, 1024
_DIGEST_BYTES = 12


class Content(Protocol):
    """The (decompressed) bytes of one file."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes, less only where the file ends for now."""
        ...


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """An offset, and fingerprints of the file's first bytes and of the bytes right before the offset."""

    offset: int = 0
    head: bytes = b""
    tail: bytes = b""

    @property
    def is_beginning(self) -> bool:
        """Nothing was read yet, so every file has this place."""
        return self.offset == 0


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where to read on. Plain data: encode it with `msgspec` beside whatever else is stored."""

    mark: Mark = Mark()
    device: int = 0
    inode: int = 0
    """A hint only: numbers are used again, and a compressed file is another one."""
    modified_ns: int = 0
    """When the file was written last, as of this position."""
    before: Mark | None = None
    """Where the file that was read before this one ended."""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


def mark_at(content: Content, offset: int) -> Mark:
    """Return the mark of a place."""
    if offset == 0:
        return Mark()
    head = content.read_at(0, min(HEAD_BYTES, offset))
    tail_bytes = min(TAIL_BYTES, offset)
    return Mark(offset, _digest(head), _digest(content.read_at(offset - tail_bytes, tail_bytes)))


def holds(content: Content, mark: Mark) -> bool:
    """Whether what was read up to the mark is what stands in this file."""
    if mark.is_beginning:
        return True
    head_bytes, tail_bytes = min(HEAD_BYTES, mark.offset), min(TAIL_BYTES, mark.offset)
    head = content.read_at(0, head_bytes)
    if len(head) < head_bytes or _digest(head) != mark.head:
        return False
    tail = content.read_at(mark.offset - tail_bytes, tail_bytes)
    return len(tail) == tail_bytes and _digest(tail) == mark.tail


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
