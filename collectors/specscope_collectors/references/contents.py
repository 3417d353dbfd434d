"""The bytes of one file: mapped, so that a view costs nothing, and read where rows of views are wanted.

Rows are copied out of the file by `preadv`, not through the map: a page that is touched first costs a fault,
and one that is no longer there, because somebody has cut the file, would end the process.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.errors import DumpError

NEAR_BYTES = 1 << 14
"""Rows that lie so near are asked for as one: a request costs a disk what so many bytes cost."""
NOT_WAITING: int | None = getattr(os, "RWF_NOWAIT", None)
PIECES_AT_ONCE = 64
ASKED_AT_ONCE = 16
"""Rows of all views that are asked for before the next: in the order in which they are used."""
NOT_DONE = "its writer, or a copy, is at work; read it again when that is done"
ALIGNED = 64

Integers = NDArray[np.int64]
Views = Sequence[NDArray[Any]]
Piece = tuple[int, int, memoryview]
"""Where in the file a row begins, a number that no other has, and where the row is put."""


@dataclass(slots=True)
class Run:
    """Bytes of the file from ``begin`` to before ``end``, and where they are put, piece by piece."""

    begin: int
    end: int
    into: list[memoryview] = field(default_factory=list)


class Memory:
    """Memory that one file after the other is read into: fresh memory costs more than the reading."""

    def __init__(self) -> None:
        self._bytes = np.zeros(0, np.uint8)

    def take(self, wanted: Sequence[tuple[np.dtype[Any], tuple[int, int]]]) -> list[NDArray[Any]]:
        """Return arrays of these types and shapes, in memory that the next caller gets, too."""
        sizes = [-(-dtype.itemsize * shape[0] * shape[1] // ALIGNED) * ALIGNED for dtype, shape in wanted]
        if len(self._bytes) < sum(sizes):
            self._bytes = np.zeros(sum(sizes), np.uint8)
        places = [0, *accumulate(sizes)]
        return [
            np.ndarray(shape, dtype, self._bytes.data, place)
            for (dtype, shape), place in zip(wanted, places, strict=False)
        ]


class Content:
    """What is in a file that is open."""

    def __init__(self, number: int) -> None:
        """Map it, of which only the pages that are touched are read. Raises OSError."""
        self.mapped = mmap.mmap(number, 0, access=mmap.ACCESS_READ)
        self.mapped.madvise(mmap.MADV_RANDOM)
        self._first = _address(np.frombuffer(self.mapped, np.uint8))
        self._number = os.dup(number)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._number, 0, 0, os.POSIX_FADV_RANDOM)

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            os.close(self._number)

    def ask(self, places: Iterable[tuple[int, int]]) -> None:
        """Let the system read (offset, length), which are then there; nothing waits for it."""
        if hasattr(os, "posix_fadvise"):
            for start, length in places:
                os.posix_fadvise(self._number, start, length, os.POSIX_FADV_WILLNEED)

    def ask_for(self, views: Views, rows: Integers) -> None:
        """Let the system read these rows of views, all at once instead of one page after the other."""
        placed = ((self._starts(raw, rows) or (), _width(raw)) for raw in views)
        self.ask(_joined([(start, start + width) for starts, width in placed for start in starts]))

    def read(
        self, views: Views, rows: Integers, memory: Memory, *, is_asked_for: bool = False
    ) -> list[NDArray[Any]]:
        """Return these rows of each view, shape (rows, width), as they lie in the file.

        They stay until the memory is used again. ``is_asked_for``: `ask_for` was called; else it is asked
        for what turns out not to be in memory. Raises DumpError for a file that was cut meanwhile.
        """
        return next(self.read_some(views, rows, memory, max(len(rows), 1), is_asked_for=is_asked_for))

    def read_some(
        self, views: Views, rows: Integers, memory: Memory, at_once: int, *, is_asked_for: bool = False
    ) -> Iterator[list[NDArray[Any]]]:
        """Yield rows as `read` does, a few at once, all in the same memory; the later ones are under way."""
        targets = memory.take([(raw.dtype, (at_once, raw.shape[1])) for raw in views])
        lines = [_lines(target) for target in targets]
        placed = [self._starts(raw, rows) for raw in views]
        for first in range(0, max(len(rows), 1), at_once):
            some = slice(first, first + at_once)
            pieces: list[Piece] = []
            for raw, target, line, starts in zip(views, targets, lines, placed, strict=True):
                if starts is None:
                    target[: len(rows[some])] = raw[rows[some]]
                else:
                    pieces += zip(starts[some], count(len(pieces)), line, strict=False)
            for run in _runs(pieces):
                if not is_asked_for and not self._was_there(run):
                    for later in range(first, len(rows), ASKED_AT_ONCE):
                        self.ask_for(views, rows[later : later + ASKED_AT_ONCE])
                    is_asked_for = True
                    self._wait_for(run)
                elif is_asked_for:
                    self._wait_for(run)
            yield [target[: len(rows[some])] for target in targets]

    def _was_there(self, run: Run) -> bool:
        """Read a run if the system has it in memory, and say whether."""
        if NOT_WAITING is None:
            return False
        try:
            return os.preadv(self._number, run.into, run.begin, NOT_WAITING) == run.end - run.begin
        except OSError:  # it is not there, or the file system cannot tell
            return False

    def _wait_for(self, run: Run) -> None:
        try:
            if os.preadv(self._number, run.into, run.begin) != run.end - run.begin:
                self._wait_in_steps(run)
        except OSError as error:
            raise DumpError(f"it cannot be read: {error.strerror or error}") from None

    def _wait_in_steps(self, run: Run) -> None:
        """Read a run of which the system gives less than is asked for; nothing means that the file ends."""
        place = run.begin
        for rest in run.into:
            while len(rest):
                got = os.preadv(self._number, [rest], place)
                if not got:
                    raise DumpError(f"it was cut off at byte {place} while it was read: {NOT_DONE}")
                rest, place = rest[got:], place + got

    def _starts(self, raw: NDArray[Any], rows: Integers) -> list[int] | None:
        """Return where in the file rows of a view begin; None: they are no pieces of it: values lie apart."""
        first = _address(raw) - self._first
        if raw.ndim != 2 or not raw.size or raw.strides[1] != raw.itemsize:
            return None
        if not 0 <= first < len(self.mapped) or not len(rows) or rows.min() < 0 or rows.max() >= len(raw):
            return None
        found: list[int] = (first + rows * raw.strides[0]).tolist()
        return found


def _lines(target: NDArray[Any]) -> list[memoryview]:
    """Return the bytes of each row."""
    content, width = target.reshape(-1).view(np.uint8).data, _width(target)
    return [content[start : start + width] for start in range(0, len(target) * width, width)]


def _runs(pieces: list[Piece]) -> list[Run]:
    """Join pieces that lie side by side in the file."""
    pieces.sort()
    runs: list[Run] = []
    for start, _, into in pieces:
        if not runs or start != runs[-1].end or len(runs[-1].into) == PIECES_AT_ONCE:
            runs.append(Run(start, start))
        runs[-1].into.append(into)
        runs[-1].end += len(into)
    return runs


def _address(raw: NDArray[Any]) -> int:
    found: int = raw.__array_interface__["data"][0]
    return found


def _width(raw: NDArray[Any]) -> int:
    width: int = raw.shape[1] * raw.itemsize
    return width


def _joined(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (offset, length) that cover (begin, end), those near to each other as one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(places):
        first, length = found[-1] if found else (begin, 0)
        if begin > first + length + NEAR_BYTES:
            found.append((begin, end - begin))
        else:
            found[max(len(found) - 1, 0) :] = [(first, max(length, end - first))]
    return found
