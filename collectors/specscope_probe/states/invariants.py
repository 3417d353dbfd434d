"""What cannot be in healthy states: rows that are equal although they must not be.

Rows are told from each other by 16 numbers: their direction through the first columns of the projection,
times the norm. Of a slot that is the embedding, rows of one token id are identical wherever they stand; a
shared prefix gives identical rows at *equal* positions, so only pairs at different positions are looked at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_REMEMBERED = 1_024
IDENTICAL = 1e-3
"""Relative difference below which two rows of one token id are the same."""
ENOUGH_PAIRS = 8
"""Pairs from which on a slot may be called the embedding."""


@dataclass(slots=True)
class Comparison:
    """Rows of one slot and phase in one window."""

    counts: Counter[str] = field(default_factory=Counter)
    _by_bytes: dict[bytes, int] = field(default_factory=dict)
    _by_id: dict[int, tuple[int, NDArray[np.float64], float]] = field(default_factory=dict)
    """Token id → position, row and its norm."""

    def add(
        self, ids: NDArray[np.int64], positions: NDArray[np.int64], sketches: NDArray[np.float32],
        ln_norms: NDArray[np.float32],
    ) -> None:  # fmt: skip
        """Compare rows with those before them; ``sketches`` has the shape (rows, 16)."""
        rows = sketches.astype(np.float64) * np.exp(ln_norms.astype(np.float64))[:, np.newaxis]
        norms = np.sqrt((rows * rows).sum(axis=1)).tolist()
        keys = np.concatenate((sketches, ln_norms[:, np.newaxis]), axis=1)
        places = zip(ids.tolist(), positions.tolist(), strict=True)
        for (token, position), row, norm, key in zip(places, rows, norms, keys, strict=True):
            self._look_for_twin(token, key.tobytes())
            self._compare(token, position, row, norm)

    def _look_for_twin(self, token: int, key: bytes) -> None:
        other = self._by_bytes.get(key)
        if other is not None and other != token:
            self.counts["duplicate_rows"] += 1
        elif other is None and len(self._by_bytes) < MOST_REMEMBERED:
            self._by_bytes[key] = token

    def _compare(self, token: int, position: int, row: NDArray[np.float64], norm: float) -> None:
        known = self._by_id.get(token)
        if known is not None and known[0] != position:
            away = row - known[1]
            self.counts["equal_id_pairs"] += 1
            self.counts["equal_id_pairs_identical"] += bool(away.dot(away) < (IDENTICAL * known[2]) ** 2)
        if known is not None or len(self._by_id) < MOST_REMEMBERED:
            self._by_id[token] = (position, row.copy(), norm)  # a view would keep all rows


def is_embedding(pairs: int, identical: int) -> bool:
    """Say whether a slot is the embedding: most pairs of rows with one token id are identical."""
    return pairs >= ENOUGH_PAIRS and 2 * identical > pairs
