"""Rows at all boundaries, summed to the profiles of a reference of all boundaries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.profiles import Summed, profiles_of
from specscope_collectors.references.projection import SKETCH, projection_of
from specscope_collectors.references.row_classes import HEAD_POSITIONS, sink_limit
from specscope_collectors.references.sums import COMPARED_ROWS, Floats, Rows, SlotSums, States, Table

PHASE = "calibration"
COMMON_IDS = 64


def common_ids(texts: Iterable[Sequence[int]], most: int = COMMON_IDS) -> tuple[int, ...]:
    """Return the commonest token ids, ascending."""
    counts = Counter(token for text in texts for token in text)
    return tuple(sorted(sorted(counts, key=lambda token: (-counts[token], token))[:most]))


class BoundaryNorms:
    """ln‖h‖ of the first requests, from which it is told what is a sink."""

    def __init__(self, boundaries: int) -> None:
        self._found: list[list[Floats]] = [[] for _ in range(boundaries)]

    def add(self, positions: NDArray[np.int64], states: Floats) -> None:
        """Add rows of a request; states have the shape (boundaries, rows, H)."""
        is_body = positions >= HEAD_POSITIONS
        for norms, values in zip(self._found, states, strict=True):
            norms.append(States(values[is_body].copy()).ln_norms)

    def limits(self) -> tuple[float | None, ...]:
        """Return the limit of each boundary; None = too few rows to know."""
        return tuple(sink_limit(np.concatenate(norms)) if norms else None for norms in self._found)


class BoundarySums:
    """Sums of one replay."""

    def __init__(self, hidden_size: int, limits: Sequence[float | None], token_ids: Sequence[int]) -> None:
        self.hidden_size = hidden_size
        self.limits = tuple(limits)
        self.token_ids = tuple(sorted(set(token_ids)))
        ids = np.array(self.token_ids, np.int64)
        self._sums = [SlotSums(hidden_size, ids, math.inf if limit is None else limit) for limit in limits]
        self._sketching = projection_of(hidden_size, SKETCH)
        self.table = Table()
        self.requests = 0

    def add(self, positions: NDArray[np.int64], ids: NDArray[np.int64], states: Floats) -> None:
        """Add the rows of one more request; states have the shape (boundaries, rows, H)."""
        rows = Rows(self.requests, positions, ids, np.zeros(len(ids), np.bool_))
        columns: dict[str, NDArray[np.generic]] = {
            "request": np.full(len(ids), self.requests, np.int32), "position": positions, "id": ids,
            "is_answer": rows.is_answer,
        }  # fmt: skip
        is_compared = self.table.rows < COMPARED_ROWS
        for boundary, (sums, values) in enumerate(zip(self._sums, states, strict=True)):
            found = States(values.astype(np.float32))
            sums.add(rows, found)
            columns[f"ln_norm_{boundary}"] = found.ln_norms
            if is_compared:
                columns[f"sketch_{boundary}"] = found.projected(self._sketching)
        self.table.add(len(ids), **columns)
        self.requests += 1

    def profiles(self, made_ms: int) -> tuple[StateProfile, ...]:
        """Return a profile for each boundary and class of rows."""
        summed = Summed(
            hidden_size=self.hidden_size, slots=0, token_ids=self.token_ids, table=self.table,
            sums=self._sums, phase=PHASE,
        )  # fmt: skip
        return tuple(profiles_of(summed, range(len(self.limits)), made_ms, answers=False))
