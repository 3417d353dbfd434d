"""Follow one path over everything that rotation does to it."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from specscope_collectors.clock import Monotonic
from specscope_collectors.tailing.contents import OpenFile
from specscope_collectors.tailing.marks import Mark, Position, holds, mark_at
from specscope_collectors.tailing.readings import Reading, TailState, failed
from specscope_collectors.tailing.rotation import Found, listed, unreadable

PIECE_BYTES = 1024 * 1024
"""Read at once; a line that is longer is handed over in pieces."""
SETTLE_SECONDS = 2.0
_LINE_SEARCH_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Place:
    """Where reading goes on."""

    found: Found
    mark: Mark
    lost: str
    """What may be missing before it; empty = nothing is."""


class Tail:
    """Reads on in one path. Keeps a file open until what was read of it is stored and it has ended."""

    def __init__(
        self,
        path: Path,
        *,
        from_beginning: bool = False,
        settle_seconds: float = SETTLE_SECONDS,
        piece_bytes: int = PIECE_BYTES,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        """``from_beginning``: what is in the file when it is first seen is read, too.

        ``settle_seconds``: how long a file that was rotated away must have been silent before it is left:
        its writer may not have noticed yet.
        """
        self.path = path.absolute()
        self._from_beginning = from_beginning
        self._settle_seconds = settle_seconds
        self._piece_bytes = piece_bytes
        self._monotonic = monotonic
        self._open: OpenFile | None = None
        self._former: OpenFile | None = None
        """Left with the last look, which may not have been stored."""
        self._looks: tuple[object, float] | None = None
        self._denied = ""
        self._most = 0
        """Bytes seen in the open file."""
        self._exactly = 0

    def read(self, position: Position | None, *, exactly: int = 0) -> Reading:
        """Return the next lines after ``position``; never raises for what is wrong with files.

        ``exactly``: so many bytes, if they are (still) there: a part of them was stored already.
        """
        self._exactly = exactly
        try:
            return self._begin() if position is None else self._read(position)
        except OSError as error:
            return failed(error, position, self.path)

    def close(self) -> None:
        """Close the files; reading again opens them again."""
        for held in (self._open, self._former):
            if held is not None:
                held.close()
        self._open = self._former = None

    # Where to read

    def _begin(self) -> Reading:
        """Take up a path that was never read."""
        try:
            opened = OpenFile(self.path)
        except FileNotFoundError as error:
            # From now on everything counts, also what is rotated away before the next look.
            return failed(error, Position(modified_ns=time.time_ns()), self.path)
        self._hold(opened)
        start = 0 if self._from_beginning or opened.is_gzip else _last_line_end(opened)
        newest_ns = max((found.modified_ns for found in listed(self.path)), default=0)
        position = _position(opened, mark_at(opened, start), None, newest_ns)
        return self._lines(opened, position)

    def _read(self, position: Position) -> Reading:
        opened = self._at(position)
        if opened is None:
            return self._search(position)
        if self._former is not None and self._former is not opened:
            self._former.close()  # what was read of it is stored: the position is beyond it
            self._former = None
        return self._lines(opened, position)

    def _at(self, position: Position) -> OpenFile | None:
        """Return the file that is open already, if it (still) holds the position."""
        for held in (self._open, self._former):
            if held is not None and held.identity == position.identity and holds(held, position.mark):
                if position.mark.is_beginning and not self._is_all_that_is_unread(held, position):
                    continue  # nothing tells it from what it was before it was truncated: see what is unread
                if held is self._former:
                    self._open, self._former = held, self._open
                return held
        return None

    def _search(self, position: Position) -> Reading:
        """Find the position in whatever the file is called now; else go on with what is unread."""
        files = listed(self.path)
        places = self._holding(files, position)
        if places:
            opened = self._take(places[0])
            if opened is None:
                return Reading(position=position, has_more=True)
            return self._lines(opened, position)
        if self._denied:
            return Reading(position=position, state=TailState.DENIED, detail=self._denied)
        unread = self._unread(files, position)
        if not unread:
            return failed(FileNotFoundError(2, os.strerror(2)), position, self.path)
        if not position.mark.is_beginning and not self._is_settled((_snapshot(files), position), 0):
            return Reading(position=position)  # a rotation may be under way: look once more
        return self._start(unread[0], position)

    def _start(self, found: Found, position: Position) -> Reading:
        """Begin another file because the one that was read is gone or was truncated."""
        lost = "" if position.mark.is_beginning else self._words(position)
        opened = self._take(found)
        if opened is None:
            return Reading(position=position, has_more=True)
        begun = _position(opened, Mark(), position.before, position.modified_ns)
        return Reading(position=begun, begins_file=True, has_more=True, lost=lost, path=opened.path)

    def _words(self, position: Position) -> str:
        known = max(0, self._most - position.mark.offset)
        more = f", at least {known} bytes" if known else ""
        names = unreadable(self.path)
        hint = f" ({names[-1]} is compressed in a way that is not read; use gzip)" if names else ""
        return (
            f"{self.path.name} was truncated, replaced or removed: what was written to it after its byte "
            f"{position.mark.offset} and before that is lost{more}{hint}"
        )

    def _holding(self, files: list[Found], position: Position) -> list[Found]:
        """Return the files in which the position may be, the most probable first."""
        self._denied = ""
        if position.mark.is_beginning:
            return self._unread(files, position)[:1] if position.inode else []
        holding = [found for found in files if self._holds(found, position.mark)]
        same = [found for found in holding if found.identity == position.identity]
        unread = {found.path for found in self._unread(files, position)}
        return same or [found for found in holding if found.path in unread] or holding

    def _unread(self, files: list[Found], position: Position) -> list[Found]:
        """Return the files that were written after those that were read, oldest first."""
        if position.before is not None:
            read = [at for at, found in enumerate(files) if self._holds(found, position.before)]
            if read:
                return files[read[-1] + 1 :]
        return [
            found for found in files if found.path == self.path or found.modified_ns > position.modified_ns
        ]

    # What to read

    def _lines(self, opened: OpenFile, position: Position) -> Reading:
        """Return whole lines of an open file, or go on to the next one."""
        offset = position.mark.offset
        size = opened.size
        data = opened.read_at(offset, self._piece_bytes)
        if not holds(opened, position.mark):
            return Reading(position=position, has_more=True)  # truncated meanwhile: whose bytes are these?
        self._most = max(self._most, offset + len(data), 0 if opened.is_gzip else size)
        if data.startswith(b"\0") and (skipped := _hole(opened, offset, data)):
            return self._given(opened, position, b"", skipped)
        if 0 < self._exactly <= len(data):
            data = data[: self._exactly]
            return self._given(opened, position, data, len(data), is_cut=not data.endswith(b"\n"))
        end = data.rfind(b"\n") + 1
        if end:
            return self._given(opened, position, data[:end], end)
        if len(data) >= self._piece_bytes:
            return self._given(opened, position, data, len(data), is_cut=True)
        return self._following(opened, position, data)

    def _given(
        self, opened: OpenFile, position: Position, data: bytes, size: int, *, is_cut: bool = False
    ) -> Reading:
        self._looks = None
        after = mark_at(opened, position.mark.offset + size)
        behind = 0 if opened.is_gzip else max(0, opened.size - after.offset)
        return Reading(
            position=_position(opened, after, position.before),
            data=data,
            is_cut=is_cut,
            begins_file=position.mark.is_beginning,
            has_more=True,
            path=opened.path,
            behind_bytes=behind,
        )

    def _following(self, opened: OpenFile, position: Position, rest: bytes) -> Reading:
        """The file has no whole line more: wait for one, or go on if another file has taken its place."""
        waiting = Reading(position=position, path=opened.path, behind_bytes=len(rest), detail=opened.damage)
        files = listed(self.path)
        if not opened.is_gzip and files and files[-1].identity == opened.identity:
            return waiting
        end = mark_at(opened, position.mark.offset + len(rest))
        place = self._next(files, opened, end, position)
        if place is None:
            return waiting
        is_last = place.found.path == self.path
        settle = self._settle_seconds if is_last and not opened.is_gzip else 0.0
        if not self._is_settled((_snapshot(files), end), settle):
            return waiting
        if rest:  # nobody will end this line
            return self._given(opened, position, rest, len(rest), is_cut=True)
        following = self._take(place.found)
        if following is None:
            return waiting
        was_empty = end.is_beginning
        before = position.before if was_empty else end
        modified_ns = position.modified_ns if was_empty else opened.modified_ns
        return Reading(
            position=_position(following, place.mark, before, modified_ns),
            begins_file=True,
            has_more=True,
            path=following.path,
            lost=f"{opened.path.name}: {opened.damage}" if opened.damage else place.lost,
        )

    def _next(self, files: list[Found], opened: OpenFile, end: Mark, position: Position) -> _Place | None:
        """Return what was written after ``opened``; a copy of it goes on where it ended."""
        own = [at for at, found in enumerate(files) if found.identity == opened.identity]
        if not own and not end.is_beginning:
            own = [at for at, found in enumerate(files) if self._holds(found, end)]
        following = files[own[-1] + 1 :] if own else self._unread(files, position)
        if not following or following[0].identity == opened.identity:
            return None
        found = following[0]
        if found.path == self.path and found.size == 0:
            return None  # made by the rotation; the writer has not come to it yet
        is_copy = not end.is_beginning and self._holds(found, end)
        is_removed = not own and not end.is_beginning and len(following) > 1
        return _Place(found, end if is_copy else Mark(), self._between(found) if is_removed else "")

    def _between(self, found: Found) -> str:
        """Say that the file that was read is no longer among those that were rotated."""
        return (
            f"{self.path.name} was rotated until what was read last was removed: files between that and "
            f"{found.path.name} may be lost; keep more rotated files"
        )

    # Small things

    def _is_all_that_is_unread(self, opened: OpenFile, position: Position) -> bool:
        """Whether a file of which nothing was read was removed, and nothing that was rotated is unread."""
        files = listed(self.path)
        is_listed = any(found.identity == opened.identity for found in files)
        return not is_listed and all(found.path == self.path for found in self._unread(files, position))

    def _is_settled(self, look: object, seconds: float) -> bool:
        """Whether everything has looked the same for so long, and twice at least."""
        now = self._monotonic()
        if self._looks is None or self._looks[0] != look:
            self._looks = (look, now)
            return False
        return now - self._looks[1] >= seconds

    def _holds(self, found: Found, mark: Mark) -> bool:
        if self._open is not None and self._open.identity == found.identity:
            return holds(self._open, mark)
        try:
            opened = OpenFile(found.path)
        except PermissionError:
            self._denied = f"{found.path}: permission denied"
            return False
        except OSError:  # gone meanwhile, or no file
            return False
        with contextlib.closing(opened):
            return opened.identity == found.identity and holds(opened, mark)

    def _take(self, found: Found) -> OpenFile | None:
        """Open a file that was listed and hold it; None when the name means another one by now."""
        with contextlib.suppress(FileNotFoundError):
            opened = OpenFile(found.path)
            if opened.identity == found.identity:
                self._hold(opened)
                return opened
            opened.close()
        return None

    def _hold(self, opened: OpenFile) -> None:
        if self._former is not None:
            self._former.close()
        self._former, self._open = self._open, opened
        self._most = 0


def _position(opened: OpenFile, mark: Mark, before: Mark | None, modified_ns: int | None = None) -> Position:
    """Return a position; at a beginning, ``modified_ns`` must not hide files that nobody has read yet."""
    device, inode = opened.identity
    return Position(mark, device, inode, opened.modified_ns if modified_ns is None else modified_ns, before)


def _last_line_end(opened: OpenFile) -> int:
    """Return where the last line begins that has no end yet."""
    size = opened.size
    start = max(0, size - _LINE_SEARCH_BYTES)
    end = opened.read_at(start, size - start).rfind(b"\n") + 1
    return start + end if end or start == 0 else size


def _hole(opened: OpenFile, offset: int, data: bytes) -> int:
    """Return how many NUL bytes to skip: what a writer leaves that goes on at its old offset."""
    zeros = len(data) - len(data.lstrip(b"\0"))
    return max(zeros, opened.hole_end(offset) - offset)


def _snapshot(files: list[Found]) -> tuple[object, ...]:
    return tuple((found.path.name, found.identity) for found in files)
