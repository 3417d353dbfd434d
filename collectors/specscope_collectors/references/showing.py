"""A few raw rows of a dump, to be looked at beside rows of serving."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specscope_collectors.references.document import SampleRow
from specscope_collectors.references.row_classes import HEAD_POSITIONS, OTHER, SINK
from specscope_collectors.references.sums import Floats, Integers

REQUESTS, ROWS = 4, 2
"""Requests that rows are shown of, and rows of each."""
VALUES = 5


@dataclass(slots=True)
class Shown:
    """Rows of the first requests; states come one place at a time."""

    rows: list[tuple[int, int, int, int, Floats, float]] = field(default_factory=list)
    """Request, place, position, token id, first values, ln norm."""
    requests: int = 0

    @classmethod
    def of(cls, saved: Sequence[Sequence[Any]]) -> Shown:
        """Return what `saved` returned."""
        return cls([(*each[:4], np.array(each[4], np.float32), each[5]) for each in saved])

    def saved(self) -> list[list[Any]]:
        """Return the rows as JSON holds them."""
        return [[*each[:4], [float(value) for value in each[4]], each[5]] for each in self.rows]

    def begin(self) -> bool:
        """Say whether rows of one more request are shown."""
        self.requests += 1
        return self.requests <= REQUESTS

    def add(self, place: int, positions: Integers, ids: Integers, values: Floats, ln_norms: Floats) -> None:
        """Keep the first rows of a place; values of shape (rows, H), behind the first positions."""
        for row in range(min(ROWS, len(positions))):
            first = np.array(values[row, :VALUES])
            found = (
                self.requests - 1,
                place,
                int(positions[row]),
                int(ids[row]),
                first,
                float(ln_norms[row]),
            )
            self.rows.append(found)

    def told(
        self, slots: int, boundaries: Sequence[int | None], limits: Sequence[float | None]
    ) -> Iterator[SampleRow]:
        """Yield the rows; ``boundaries`` and ``limits`` are those of each place, slots first."""
        for request, place, position, token, values, ln_norm in self.rows:
            limit = limits[place]
            assert position >= HEAD_POSITIONS
            yield SampleRow(
                request=request, slot=place if place < slots else None, boundary=boundaries[place],
                position=position, token_id=token,
                row_class=SINK if limit is not None and ln_norm > limit else OTHER,
                norm=_number(math.exp(ln_norm)) if ln_norm < 700 else None,
                first_values=tuple(_number(float(value)) for value in values),
            )  # fmt: skip


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
