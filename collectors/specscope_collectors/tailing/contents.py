"""Files by offset: plain ones, and gzip as if it were plain."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path

from specscope_collectors.tailing.marks import HEAD_BYTES, TAIL_BYTES

GZIP = b"\x1f\x8b"
STEP_BYTES = 256 * 1024
KEPT_BYTES = 2 * 1024 * 1024 + TAIL_BYTES
"""Of a compressed file: how far one can go back without reading it from the beginning again."""


class NotAFileError(OSError):
    """A directory, pipe or device, which cannot be read by offset."""


class OpenFile:
    """One open file; the object stays the same file when its name is given to another one."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises OSError, `NotAFileError` among them."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise NotAFileError(f"{path} is no file")
        self.identity = (status.st_dev, status.st_ino)
        self.is_gzip = os.pread(self._descriptor, 2, 0) == GZIP
        self._inflated = _Inflated(self._descriptor) if self.is_gzip else None

    @property
    def modified_ns(self) -> int:
        """When it was written last."""
        return os.fstat(self._descriptor).st_mtime_ns

    @property
    def size(self) -> int:
        """Bytes in it now, compressed ones of a compressed file."""
        return os.fstat(self._descriptor).st_size

    @property
    def damage(self) -> str:
        """Why a compressed file could not be read to its end; empty when it was."""
        return self._inflated.damage if self._inflated else ""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` decompressed bytes, less only where the file ends for now."""
        if self._inflated is not None:
            return self._inflated.read_at(offset, size)
        found = bytearray()
        while len(found) < size:
            more = os.pread(self._descriptor, size - len(found), offset + len(found))
            if not more:
                break
            found += more
        return bytes(found)

    def hole_end(self, offset: int) -> int:
        """Return where data begins again: who goes on writing at an old offset leaves a hole before it."""
        try:
            return os.lseek(self._descriptor, offset, os.SEEK_DATA)
        except OSError:  # no data behind it, or a file system without holes
            return offset

    def close(self) -> None:
        """Close it; once."""
        os.close(self._descriptor)


class _Inflated:
    """The bytes inside gzip, members one after the other; damage ends it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._head = b""
        self._restart()

    def read_at(self, offset: int, size: int) -> bytes:
        if offset + size <= len(self._head):
            return self._head[offset : offset + size]
        if offset < self._start:
            self._restart()
        while self._start + len(self._window) < offset + size:
            more = self._more()
            if not more:
                break
            self._window += more
            self._trim(offset)
        at = offset - self._start
        return bytes(self._window[at : at + size])

    def _restart(self) -> None:
        self._raw_offset = self._start = 0
        self._window = bytearray()
        self._inflater = zlib.decompressobj(31)
        self._rest = b""
        self.damage = ""

    def _trim(self, needed_from: int) -> None:
        if len(self._head) < HEAD_BYTES and self._start == 0:
            self._head = bytes(self._window[:HEAD_BYTES])
        spare = min(len(self._window) - KEPT_BYTES, needed_from - self._start)
        if spare > STEP_BYTES:
            del self._window[:spare]
            self._start += spare

    def _more(self) -> bytes:
        while not self.damage:
            if self._inflater.eof:
                self._rest = self._inflater.unused_data or self._raw()
                if not self._rest.startswith(GZIP[:1]):
                    return b""
                self._inflater = zlib.decompressobj(31)
            raw = self._rest or self._raw()
            if not raw:
                self.damage = "the compressed file ends too early"
                return self._inflater.flush()
            try:
                out = self._inflater.decompress(raw, STEP_BYTES)
            except zlib.error as error:
                self.damage = f"the compressed file is damaged ({error})"
                return b""
            self._rest = self._inflater.unconsumed_tail
            if out:
                return out
        return b""

    def _raw(self) -> bytes:
        data = os.pread(self._descriptor, STEP_BYTES, self._raw_offset)
        self._raw_offset += len(data)
        return data
