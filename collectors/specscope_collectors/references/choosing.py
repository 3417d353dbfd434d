"""Which requests of a dump are read, and which rows of them: few rows of many requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.row_classes import HEAD_POSITIONS

ROWS_OF_A_REQUEST = 64


def choose_files(files: Sequence[str], budget_rows: int, seed: int) -> list[str]:
    """Return files to read, spread evenly over the dump, in an order that mixes its parts."""
    count = min(len(files), max(budget_rows // ROWS_OF_A_REQUEST, 1))
    random = np.random.default_rng(seed)
    bounds = np.arange(count + 1) * len(files) // count
    places = bounds[:-1] + np.floor(random.random(count) * np.diff(bounds)).astype(np.int64)
    return [files[place] for place in random.permutation(places).tolist()]


def choose_rows(tokens: int, name: str, seed: int) -> NDArray[np.int64]:
    """Return rows of a request of so many tokens, ascending: the first positions, and others by chance.

    The same file gives the same rows, whatever else is read.
    """
    head = np.arange(min(tokens, HEAD_POSITIONS))
    wanted = min(tokens - len(head), ROWS_OF_A_REQUEST - HEAD_POSITIONS)
    digest = hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogateescape")).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    rest = random.choice(tokens - len(head), wanted, replace=False) + len(head) if wanted else head[:0]
    return np.sort(np.concatenate((head, rest))).astype(np.int64)
