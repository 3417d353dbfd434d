"""A process that writes a log, and everything that rotation does to it, with real files."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import msgspec

from specscope_collectors.tailing import Position, Reading, Tail


class Log:
    """A log in a directory of its own; knows what was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        self._file = path.open("ab", buffering=0)
        self._is_half = False

    def write(self, count: int = 1) -> None:
        """Write whole lines."""
        self.finish()
        for _ in range(count):
            self.lines.append(f"line {len(self.lines)} {'x' * (len(self.lines) % 70)}")
            self._file.write(self.lines[-1].encode() + b"\n")

    def half(self) -> None:
        """Write half a line and pause."""
        self.finish()
        self.lines.append(f"half {len(self.lines)}")
        self._file.write(b"ha")
        self._is_half = True

    def finish(self) -> None:
        """Write the other half."""
        if self._is_half:
            self._file.write(self.lines[-1].encode()[2:] + b"\n")
            self._is_half = False

    def rename(self, *, reopen: bool = True) -> None:
        """Rotate by renaming; without ``reopen`` the writer goes on in the renamed file."""
        self.finish()
        self._shift()
        self.path.rename(self._name(1))
        if reopen:
            self.reopen()

    def reopen(self) -> None:
        """Open the path anew, as a writer does when it is told of a rotation."""
        self.finish()
        self._file.close()
        self._file = self.path.open("ab", buffering=0)

    def copytruncate(self) -> None:
        """Copy, then truncate; the writer does not notice."""
        self.finish()
        self._shift()
        shutil.copyfile(self.path, self._name(1))
        os.truncate(self.path, 0)

    def compress(self) -> None:
        """Compress the oldest rotated file that is not compressed."""
        plain = [self._name(number) for number in range(9, 0, -1) if self._name(number).exists()]
        if not plain or plain[0].stat().st_ino == os.fstat(self._file.fileno()).st_ino:
            return  # who rotates does not compress what is still written
        compressed = plain[0].with_name(plain[0].name + ".gz")
        compressed.write_bytes(gzip.compress(plain[0].read_bytes()))
        plain[0].unlink()

    def close(self) -> None:
        """End the last line and stop writing."""
        self.finish()
        self._file.close()

    def _name(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _shift(self) -> None:
        for number in range(40, 0, -1):
            for end in ("", ".gz"):
                old = self.path.with_name(f"{self.path.name}.{number}{end}")
                if old.exists():
                    old.rename(self.path.with_name(f"{self.path.name}.{number + 1}{end}"))


class Reader:
    """Follows a log as a collector does: what is not stored is forgotten."""

    def __init__(self, path: Path, *, from_beginning: bool = True, settle_seconds: float = 0.0) -> None:
        self._path = path
        self._from_beginning = from_beginning
        self._settle_seconds = settle_seconds
        self.now = 0.0
        self.position: Position | None = None
        self.data = b""
        self.lost: list[str] = []
        self.tail = self._made()

    def look(self, *, store: bool = True) -> Reading:
        """Look once; without ``store`` the process is killed before it could store what it read."""
        reading = self.tail.read(self.position)
        if not store:
            self.restart()
            return reading
        packed = msgspec.msgpack.encode(reading.position)
        self.position = msgspec.msgpack.decode(packed, type=Position | None)
        self.data += reading.data
        self.lost += [reading.lost] if reading.lost else []
        return reading

    def drain(self) -> None:
        """Look until nothing more comes, several times."""
        quiet = 0
        while quiet < 6:
            before = self.position
            reading = self.look()
            quiet = 0 if reading.data or reading.position != before else quiet + 1

    def restart(self) -> None:
        """Forget everything but the position."""
        self.tail.close()
        self.tail = self._made()

    @property
    def lines(self) -> list[str]:
        """Return the lines read."""
        return self.data.decode().splitlines()

    def _made(self) -> Tail:
        return Tail(
            self._path,
            from_beginning=self._from_beginning,
            settle_seconds=self._settle_seconds,
            monotonic=lambda: self.now,
        )
