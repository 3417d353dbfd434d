"""Profiles of the contract from a table of rows and the sums of slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.projection import NAME, projection_of
from specscope_collectors.references.row_classes import OTHER, classes_of, sketch_of
from specscope_collectors.references.sums import ANSWER, Floats, SlotSums, Table

PREFILL = "prefill"
"""Dumps are prefill over whole conversations."""
IDENTICAL = 1e-3
"""Relative difference below which two rows of one token id are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """Rows and sums of places that become profiles."""

    hidden_size: int
    slots: int
    """The first so many places are slots; the others are none."""
    token_ids: Sequence[int]
    table: Table
    sums: Sequence[SlotSums]
    phase: str = PREFILL


def profiles_of(
    read: Summed, boundaries: Sequence[int | None], made_ms: int, answers: bool
) -> Iterator[StateProfile]:
    """Yield a profile for each place and class that has rows: of answers, or of all rows."""
    table = read.table
    chosen = table.column("is_answer") if answers else np.ones(table.rows, np.bool_)
    width, slots = read.hidden_size, read.slots
    projection = projection_of(width) if read.token_ids else np.empty((width, 0), np.float32)
    for place, sums in enumerate(read.sums):
        ln_norms = table.column(f"ln_norm_{place}")
        classes = classes_of(ln_norms, table.column("position"), sums.limit)
        for row_class, members in classes.items():
            rows = np.flatnonzero(members & chosen)
            if not len(rows):
                continue
            invariants = {
                "zero_rows": int(np.isneginf(ln_norms[rows]).sum()),
                "nonfinite_rows": int((~np.isfinite(ln_norms[rows]) & ~np.isneginf(ln_norms[rows])).sum()),
            }
            more: dict[str, Any] = {}
            if row_class == OTHER:
                invariants |= compared(table, place, rows)
                more = _summed(sums, read.token_ids, projection, answers)
            yield StateProfile(
                time_ms=made_ms, span_ms=1, labels={}, phase=read.phase, row_class=row_class,
                slot=place if place < slots else None, boundary=boundaries[place], hidden_size=width,
                rows=len(rows), requests=len(np.unique(table.column("request")[rows])),
                ln_norms=sketch_of(ln_norms[rows]), invariants=invariants, **more,
            )  # fmt: skip


def _summed(sums: SlotSums, token_ids: Sequence[int], projection: Floats, answers: bool) -> dict[str, Any]:
    def total(array: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(array[ANSWER] if answers else array.sum(axis=0))

    channels, counts = total(sums.channels), total(sums.token_rows)
    found: dict[str, Any] = {
        "direction_sum": _bytes(channels[0]),
        "direction_sum_of_squares": _bytes(channels[1]),
        "sum_of_squares": _bytes(channels[2]),
    }
    seen = np.flatnonzero(counts)
    if len(seen):
        found["token_ids"] = tuple(token_ids[place] for place in seen.tolist())
        found["token_rows"] = tuple(counts[seen].tolist())
        found["token_directions"] = _bytes(total(sums.tokens)[seen] @ projection)
        found["projection"] = NAME
    return found


def compared(table: Table, place: int, rows: NDArray[np.int64]) -> dict[str, int]:
    """Return counts of rows that are equal although they must not be, among the first rows of a table.

    Rows with the same token id at different positions are compared pair after pair, in the order of reading;
    a row that equals an earlier one of another id to the bit is a duplicate.
    """
    sketches, ln_norms = table.column(f"sketch_{place}"), table.column(f"ln_norm_{place}")
    rows = rows[(rows < len(sketches)) & np.isfinite(ln_norms[rows])]
    ids, positions = table.column("id")[rows], table.column("position")[rows]
    vectors = sketches[rows].astype(np.float64) * np.exp(ln_norms[rows].astype(np.float64))[:, None]
    order = np.argsort(ids, kind="stable")
    first, second = order[:-1], order[1:]
    is_pair = (ids[first] == ids[second]) & (positions[first] != positions[second])
    first, second = first[is_pair], second[is_pair]
    distances = np.linalg.norm(vectors[second] - vectors[first], axis=1)
    is_same = distances < IDENTICAL * np.linalg.norm(vectors[first], axis=1)
    return {
        "duplicate_rows": _duplicates(sketches[rows], ln_norms[rows], ids),
        "equal_id_pairs": len(first),
        "equal_id_pairs_identical": int(is_same.sum()),
    }


def _duplicates(sketches: Floats, ln_norms: Floats, ids: NDArray[np.int64]) -> int:
    both = np.ascontiguousarray(np.column_stack((sketches, ln_norms)).astype(np.float32))
    keys = both.view(np.dtype((np.void, both.shape[1] * both.itemsize))).reshape(-1)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return int((ids != ids[first[inverse]]).sum())


def _bytes(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array, "<f4").tobytes()
