"""Whole rows of a few training requests at all boundaries: what a replay is compared with.

A file of numpy (``.npz``, nothing in it is ever executed): of each request its token ids, and of some of its
rows the states at all boundaries as bfloat16, in which dumps have them, too.
"""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.dtypes import BFLOAT16, as_bfloat16, as_float32
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.walking import check_regular

SUFFIX = ".rows.npz"
MAX_BYTES = 2 << 30
MAX_REQUESTS = 1_024
FORMAT = 1
NPZ_ERRORS = (
    ValueError, TypeError, AttributeError, LookupError, EOFError, MemoryError, OverflowError, RuntimeError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What `numpy.load` and its arrays raise of a file that is none of numpy's, or lies about its sizes."""

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows of one request."""

    name: str
    token_ids: Integers
    positions: Integers
    states: Floats
    """Shape (boundaries, rows, H)."""


class RowsFile:
    """A file that is being filled."""

    def __init__(self, hidden_size: int, boundaries: int) -> None:
        self._shape = (boundaries, hidden_size)
        self._arrays: dict[str, NDArray[Any]] = {"format": np.array([FORMAT, boundaries, hidden_size])}
        self._names: list[str] = []

    def add(self, name: str, token_ids: Integers, positions: Integers, states: Floats) -> None:
        """Add a request; states have the shape (boundaries, rows, H)."""
        number = len(self._names)
        self._names.append(name)
        self._arrays |= {
            f"ids_{number}": token_ids.astype(np.int64),
            f"positions_{number}": positions.astype(np.int64),
            f"states_{number}": as_bfloat16(states),
        }

    def write(self, path: Path) -> None:
        """Write it whole or not at all. Raises OSError."""
        hidden = path.with_name(f".{path.name}.{os.getpid()}")
        names = np.array([name.encode("utf-8", "surrogateescape")[:500] for name in self._names], "S500")
        try:
            with hidden.open("xb") as file:
                np.savez(file, **{"names": names, **self._arrays})  # type: ignore[arg-type]
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)


def read_rows(path: Path) -> list[TrainingRows]:
    """Return the requests of a file, which may be hostile. Raises DumpError and OSError."""
    check_regular(path)
    if path.stat().st_size > MAX_BYTES:
        raise DumpError(f"{path} has over {MAX_BYTES} bytes; rows of a few requests have far fewer")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise DumpError(f"{path} unpacks to over {MAX_BYTES} bytes")
        with np.load(path, allow_pickle=False) as found:
            return _requests(path, found)
    except NPZ_ERRORS as error:
        if isinstance(error, DumpError):
            raise
        reason = str(error) or type(error).__name__
        words = f"{path} is no file of training rows ({reason[:200]}); make one with --rows of"
        raise DumpError(f"{words} specscope reference replay-torch") from None


def _requests(path: Path, found: Any) -> list[TrainingRows]:
    version, boundaries, hidden_size = _whole_vector(found, "format").tolist()
    if version != FORMAT:
        raise DumpError(f"{path} has format {version}, and {FORMAT} is read here")
    names = found["names"].tolist()[:MAX_REQUESTS]
    requests = []
    for number, name in enumerate(names):
        ids, positions = _whole_vector(found, f"ids_{number}"), _whole_vector(found, f"positions_{number}")
        raw = found[f"states_{number}"]
        if raw.dtype != np.uint16:
            raise ValueError(f"its states are {raw.dtype}")
        states = as_float32(raw, BFLOAT16)
        if states.shape != (boundaries, len(positions), hidden_size):
            raise DumpError(f"{path}: the states of request {number} do not have the shape they should")
        if len(positions) and not 0 <= positions.min() <= positions.max() < len(ids):
            raise DumpError(f"{path}: request {number} has rows behind its end")
        requests.append(TrainingRows(name.decode("utf-8", "surrogateescape"), ids, positions, states))
    return requests


def _whole_vector(found: Any, name: str) -> Integers:
    array = found[name]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"its {name} is no vector of whole numbers")
    return np.asarray(array, np.int64)
