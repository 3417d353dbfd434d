"""Files of whole rows in the spool's folder: whole or not there, bounded together, and gone after an hour."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

PREFIX, SUFFIX, HIDDEN = "specscope-replay-", ".npz", ".specscope-replay-"
MAX_BYTES = 1 << 30
KEPT_SECONDS = 3_600.0


class ReplayFullError(OSError):
    """The folder holds as many rows as it may."""


class ReplayFiles:
    """Where rows of replays go."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def write(self, run: str, sample: int, start: int, arrays: Mapping[str, Any]) -> Path:
        """Write a file, readable by its owner alone. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        size = sum(int(array.nbytes) for array in arrays.values())
        if self._used() + size > self._max_bytes:
            raise ReplayFullError(f"{self._folder} would hold over {self._max_bytes} bytes of replays")
        name = f"{run}-{sample:05d}-{start:07d}{SUFFIX}"
        hidden, final = self._folder / f"{HIDDEN}{os.getpid()}-{name}", self._folder / f"{PREFIX}{name}"
        try:
            with os.fdopen(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                np.savez(file, **arrays)
            hidden.rename(final)
        except OSError:
            with suppress(OSError):
                hidden.unlink()
            raise
        return final

    def _ours(self) -> list[Path]:
        return [*self._folder.glob(f"{PREFIX}*{SUFFIX}"), *self._folder.glob(f"{HIDDEN}*{SUFFIX}")]

    def _used(self) -> int:
        used = 0
        for path in self._ours():
            with suppress(OSError):
                used += path.lstat().st_size
        return used

    def _sweep(self) -> None:
        """Remove what nobody has fetched."""
        before = time.time() - KEPT_SECONDS
        for path in self._ours():
            with suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.unlink()
