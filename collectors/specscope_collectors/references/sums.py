"""What is kept of the rows that were read: a table of small numbers for each row, and sums for each slot.

Sums are of rows of the class ``other`` alone, apart for answers (loss_mask = 1) and the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.row_classes import OTHER, classes_of

GROUPS = 2
REST, ANSWER = 0, 1
COMPARED_ROWS = 8_192
"""Rows that are compared with each other, to find what cannot be."""

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one request; the states come one slot at a time."""

    request: int
    positions: Integers
    ids: Integers
    is_answer: NDArray[np.bool_]


@dataclass(slots=True)
class Table:
    """A line for each row that was read, in pieces of one request."""

    columns: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    rows: int = 0

    def add(self, rows: int, **columns: NDArray[Any]) -> None:
        """Add the rows of one request."""
        for name, values in columns.items():
            self.columns.setdefault(name, []).append(values)
        self.rows += rows

    def column(self, name: str) -> NDArray[Any]:
        """Return a whole column. Raises KeyError."""
        pieces = self.columns[name]
        if len(pieces) > 1:
            self.columns[name] = [np.concatenate(pieces)]
        return self.columns[name][0]


class SlotSums:
    """Sums of one slot."""

    def __init__(self, hidden_size: int, token_ids: Integers, limit: float) -> None:
        self.limit = limit
        self._known = token_ids
        self.channels = np.zeros((GROUPS, 3, hidden_size))
        """Σu, Σu², Σh²."""
        self.tokens = np.zeros((GROUPS, len(token_ids), hidden_size))
        """Σu of each token id."""
        self.token_rows = np.zeros((GROUPS, len(token_ids)), np.int64)

    def add(self, rows: Rows, states: Floats, ln_norms: Floats, units: Floats) -> None:
        """Add the rows of one request; ``states`` and ``units`` have the shape (rows, H)."""
        others = classes_of(ln_norms, rows.positions, self.limit)[OTHER] & np.isfinite(ln_norms)
        weights = np.stack([others & ~rows.is_answer, others & rows.is_answer]).astype(np.float32)
        clean = np.where(np.isfinite(ln_norms)[:, None], states, np.float32(0))
        self.channels[:, 0] += weights @ units
        self.channels[:, 1] += weights @ (units * units)
        self.channels[:, 2] += (weights @ (clean * clean)).astype(np.float64)
        self._add_tokens(rows, others, units)

    def _add_tokens(self, rows: Rows, others: NDArray[np.bool_], units: Floats) -> None:
        if not len(self._known):
            return
        places = np.searchsorted(self._known, rows.ids).clip(max=len(self._known) - 1)
        taken = np.flatnonzero(others & (self._known[places] == rows.ids))
        if not len(taken):
            return
        groups = rows.is_answer[taken].astype(np.int64)
        np.add.at(self.token_rows, (groups, places[taken]), 1)
        pairs, inverse = np.unique(groups * len(self._known) + places[taken], return_inverse=True)
        choice = np.zeros((len(pairs), len(taken)), np.float32)
        choice[inverse, np.arange(len(taken))] = 1
        self.tokens.reshape(-1, self.tokens.shape[-1])[pairs] += choice @ units[taken]


def ln_norms_of(states: Floats) -> Floats:
    """Return ln‖h‖ of rows; −∞ for rows of zeros, not finite where a value is not."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        result: Floats = np.log(np.sqrt(np.einsum("ij,ij->i", states, states)))
    return result


def units_of(states: Floats, ln_norms: Floats) -> Floats:
    """Return directions u = h/‖h‖; 0 for rows without a norm."""
    good = np.isfinite(ln_norms)
    scale = np.exp(-np.where(good, ln_norms, 0)).astype(np.float32)
    units: Floats = states * scale[:, None]
    if not good.all():
        units[~good] = 0
    return units
