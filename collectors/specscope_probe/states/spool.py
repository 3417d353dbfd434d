"""Files of profiles in a folder: whole or not there, and never more than a bound.

A file is written under a hidden name, synced, and renamed; a kill in between leaves a hidden file, which is
swept when it is old. What does not fit, or cannot be written, is given up and counted by the caller.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

PREFIX, SUFFIX = "specscope-states-", ".json.gz"
SENDING = "specscope-sending-"
"""Begin of the name while a file is pushed; then follows the sequence."""
HIDDEN = ".specscope-states-"
SWEEP_SECONDS = 600.0
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


class SpoolFullError(OSError):
    """The folder holds as much as it may; nobody collects its files, or not fast enough."""


class Spool:
    """A folder that the ranks of an engine share."""

    def __init__(self, folder: Path, max_bytes: int, rank: Mapping[str, str]) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self.rank = "-".join(_UNSAFE.sub("", f"{name}{value}") for name, value in rank.items())[:100]
        self._numbers = count()

    def write(self, content: bytes, created_ms: int) -> Path:
        """Write one file durably. Raises OSError; then at worst a hidden file is left behind."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        if self._used() + len(content) > self._max_bytes:
            raise SpoolFullError(
                f"{self.folder} would hold over {self._max_bytes} bytes; let a `[[probe]]` job collect it, "
                "or push to a server"
            )
        name = f"{created_ms:013d}-{os.getpid()}-{next(self._numbers)}-{self.rank}{SUFFIX}"
        hidden, final = self.folder / (HIDDEN + name), self.folder / (PREFIX + name)
        try:
            with hidden.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            hidden.rename(final)
        except OSError:
            with suppress(OSError):
                hidden.unlink()
            raise
        self._sync_folder()
        return final

    def _used(self) -> int:
        names = (f"{PREFIX}*{SUFFIX}", f"{SENDING}*{SUFFIX}")
        return sum(_size(path) for name in names for path in self.folder.glob(name))

    def _sweep(self) -> None:
        """Remove what kills have left; another rank's file in the making is younger."""
        before = time.time() - SWEEP_SECONDS
        for path in self.folder.glob(f"{HIDDEN}*{SUFFIX}"):
            with suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()

    def _sync_folder(self) -> None:
        with suppress(OSError):  # some file systems cannot; then the rename is as durable as it gets
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
