"""Following a file that people and programs save while it is read.

An editor, `cp` or a copy over the network writes in parts, and what is there in between may read as a whole
file that lacks its end. So a file that changed is used when two looks in a row saw the same: size, time of
the last change and content. Nothing tells a file whose writer was killed from one that was meant so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

SETTLE_MS = 5_000
"""The looks are at least this far apart, however often is looked."""
LONGEST_CHANGE_MS = 300_000
"""A file that no two looks saw alike for so long is a problem to be told."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at once."""

    mark: object
    """(time of the last change, size, inode), or the error's number."""
    digest: bytes
    content: bytes | None = field(compare=False, repr=False)
    """None = it cannot be read."""


class Follower:
    """Says when a file is to be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: Look | None = None
        self._seen: Look | None = None
        self._seen_ms = 0
        self._changing_ms: int | None = None

    def now(self) -> Look:
        """Return the file as it is, to be used at once: at the start nothing is in force that could end."""
        return self._use(_look(self._path))

    def settled(self, now_ms: int) -> Look | None:
        """Look at the file; return what two looks saw, if it is not what was used last."""
        if self._used is not None and mark_of(self._path) == self._used.mark:
            self._seen = self._changing_ms = None
            return None
        look = _look(self._path)
        if look == self._used:  # what cannot be read, and could not be before
            self._seen = self._changing_ms = None
            return None
        if self._changing_ms is None:
            self._changing_ms = now_ms
        if look != self._seen or now_ms < self._seen_ms:
            self._seen, self._seen_ms = look, now_ms
            return None
        return self._use(look) if now_ms - self._seen_ms >= SETTLE_MS else None

    def is_restless(self, now_ms: int) -> bool:
        """Tell whether the file changes all the time, so that it is not used."""
        return self._changing_ms is not None and now_ms - self._changing_ms > LONGEST_CHANGE_MS

    def _use(self, look: Look) -> Look:
        self._used, self._seen, self._changing_ms = look, None, None
        return look


def mark_of(path: Path) -> object:
    """Return what changes when the file does."""
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return found.st_mtime_ns, found.st_size, found.st_ino


def _look(path: Path) -> Look:
    mark = mark_of(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        return Look(error.errno, b"", None)
    # What is read while it is written is like no other look.
    changed = mark_of(path)
    return Look(mark if mark == changed else (mark, changed), sha256(content).digest(), content)
