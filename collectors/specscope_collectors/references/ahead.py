"""Files are opened, and their rows asked for, ahead of being read: the disk works while rows are summed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.choosing import choose_rows
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.opening import DumpFile
from specscope_collectors.references.reading import Dump, places_of_states
from specscope_collectors.references.shapes import Sample
from specscope_collectors.references.walking import path_of

OPENED, TOUCHED = 4, 16
"""Files that are opened ahead, and whose ends are asked for before that."""
END_BYTES = 1 << 16
"""Of a file's beginning and end: there its tensors are described."""
COMPRESSED = (".gz", ".zst")

Opened = tuple[DumpFile, Sample, NDArray[np.int64]]
"""A file, what it holds, and the rows that are to be read."""


class Ahead:
    """Opens these files one after the other. A compressed one is unpacked when it is its turn, not before."""

    def __init__(self, dump: Dump, names: Sequence[str], seed: int) -> None:
        self._dump = dump
        self._names = names
        self._seed = seed
        self._opened: dict[int, Opened | DumpError] = {}
        self._touched = 0

    def open(self, number: int) -> Opened:
        """Return a file, the lowest number first. Raises DumpError for one that is not like the others."""
        self._touch(number)
        for later in range(number, min(number + OPENED, len(self._names))):
            if later > number and self._names[later].endswith(COMPRESSED):
                break
            if later not in self._opened:
                self._opened[later] = self._asked_for(self._names[later])
        found = self._opened.pop(number)
        if isinstance(found, DumpError):
            raise found
        return found

    def _touch(self, number: int) -> None:
        first, last = max(self._touched, number), min(number + TOUCHED, len(self._names))
        for later in range(first, last):
            with suppress(DumpError, OSError):
                ask_for_ends(os.fspath(path_of(self._dump.root, self._names[later])))
        self._touched = max(last, self._touched)

    def _asked_for(self, name: str) -> Opened | DumpError:
        try:
            opened, sample = self._dump.open(name)
        except DumpError as error:
            return error
        rows = choose_rows(len(sample.token_ids), name, self._seed)
        if opened.content is not None:
            opened.content.ask_for([state.raw for state in places_of_states(sample)], rows)
        return opened, sample, rows


def ask_for_ends(path: str) -> None:
    """Ask the system to read both ends of a file; nothing waits for it. Raises OSError."""
    if not hasattr(os, "posix_fadvise"):
        return
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(number).st_size
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_RANDOM)
        os.posix_fadvise(number, 0, END_BYTES, os.POSIX_FADV_WILLNEED)
        os.posix_fadvise(number, max(size - END_BYTES, 0), END_BYTES, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(number)
