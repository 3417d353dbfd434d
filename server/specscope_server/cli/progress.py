"""How far an import has read: one bar on a terminal, on standard error; elsewhere nothing.

Bytes are counted where they come from the disk or the pipe, before they are decompressed, so that the size of
a file is the end of its bar.
"""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from specscope_collectors.sources.sglang_log.report import plain

MAX_NAME = 40
Moved = Callable[[int], None]
"""Is told how many bytes were read."""


def opened(path: Path) -> io.BufferedReader:
    """Open a file without a bar. Raises OSError."""
    return path.open("rb")


class ReadingBar:
    """One bar for all files of an import. Use it as a context, and open the files with it."""

    def __init__(
        self, files: Iterable[Path | None], console: Console | None = None, *, is_shown: bool = True
    ) -> None:
        """``files``: None = standard input, of which nobody knows how much will come.

        ``is_shown``: False where standard output goes to the same terminal.
        """
        shown = console or Console(stderr=True)
        sizes = [_size(file) for file in files]
        known = [size for size in sizes if size is not None]
        columns = (
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
            TransferSpeedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        self._progress = Progress(
            *columns, console=shown, transient=True, disable=not (is_shown and shown.is_terminal)
        )
        self.read_bytes = 0
        self._task = self._progress.add_task(
            "reading", total=sum(known) if len(known) == len(sizes) else None
        )

    def __enter__(self) -> ReadingBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def name(self, text: str) -> None:
        """Say what is read; the name of a file is somebody else's text."""
        words = plain(text)
        shown = words if len(words) <= MAX_NAME else f"…{words[1 - MAX_NAME :]}"
        self._progress.update(self._task, description=shown.replace("[", r"\["))

    def moved(self, count: int) -> None:
        """Add bytes that were read."""
        self.read_bytes += count
        self._progress.advance(self._task, count)

    def open(self, path: Path) -> io.BufferedReader:
        """Open a file whose bytes move the bar. Raises OSError."""
        self.name(path.name)
        return io.BufferedReader(_Counted(path, self.moved))

    def watch(self, stream: BinaryIO) -> _Watched:
        """Let what is read of an open stream move the bar."""
        return _Watched(stream, self.moved)


class StepBar:
    """A bar of steps whose number is known, such as requests of a dump. Use it as a context."""

    def __init__(self, what: str, console: Console | None = None) -> None:
        shown = console or Console(stderr=True)
        columns = (
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeRemainingColumn(),
        )  # fmt: skip
        self._progress = Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)
        self._task = self._progress.add_task(what, total=None)

    def __enter__(self) -> StepBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def at(self, done: int, total: int) -> None:
        """Show that so many steps of so many are done."""
        self._progress.update(self._task, completed=done, total=total)


class _Counted(io.FileIO):
    """A file that tells how much of it was read."""

    def __init__(self, path: Path, moved: Moved) -> None:
        super().__init__(path, "rb")
        self._moved = moved

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        """Read into the buffer; return how many bytes."""
        count = super().readinto(buffer) or 0
        self._moved(count)
        return count

    def readall(self) -> bytes:
        """Read all that is left."""
        data = super().readall()
        self._moved(len(data))
        return data


class _Watched:
    """A stream that tells how much of it was read."""

    def __init__(self, stream: BinaryIO, moved: Moved) -> None:
        self._stream = stream
        self._moved = moved

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self._moved(len(data))
        return data

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        self._stream.close()


def _size(file: Path | None) -> int | None:
    """Return the size of a regular file; None for what has no end that is known."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None
