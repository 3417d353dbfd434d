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

LEAST_ENERGY = np.finfo(np.float32).tiny
"""Of ‖h‖² in float32: below it digits are lost, and a row is as good as zero."""

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
        self._direction = np.zeros(hidden_size, np.float32)

    def add(self, rows: Rows, states: States) -> None:
        """Add the rows of one request.

        Directions are never made: Σu = Σ h/‖h‖ and Σu² = Σ h²/‖h‖² are products with weights that hold norms.
        """
        others = classes_of(states.ln_norms, rows.positions, self.limit)[OTHER] & states.is_good
        weights = np.stack([others & ~rows.is_answer, others & rows.is_answer]).astype(np.float32)
        scaled = weights * states.scale
        self.channels[:, 0] += scaled @ states.values
        self.channels[:, 1] += (scaled * states.scale) @ states.squares
        self.channels[:, 2] += weights @ states.squares
        self._add_tokens(rows, others, states)

    def _add_tokens(self, rows: Rows, others: NDArray[np.bool_], states: States) -> None:
        if not len(self._known):
            return
        places = np.searchsorted(self._known, rows.ids).clip(max=len(self._known) - 1)
        taken = np.flatnonzero(others & (self._known[places] == rows.ids))
        groups = rows.is_answer[taken].astype(np.int64)
        np.add.at(self.token_rows, (groups, places[taken]), 1)
        # Rows of one sum follow each other, in their order: the sum is then near the processor.
        order = np.argsort(groups * len(self._known) + places[taken], kind="stable")
        for row, group, place in zip(
            taken[order].tolist(), groups[order].tolist(), places[taken][order].tolist(), strict=True
        ):
            np.multiply(states.values[row], states.scale[row], out=self._direction)
            self.tokens[group, place] += self._direction


def energies_of(values: Floats, into: Floats | None = None) -> Floats:
    """Return ‖h‖² of each row, which errs by a millionth: half of it in ln‖h‖, whose bins are 0.02 wide."""
    energy: Floats = np.vecdot(values, values, out=into)
    return energy


def norms_of(energy: Floats) -> Floats:
    """Return ‖h‖ of ‖h‖², which is changed."""
    energy[energy < LEAST_ENERGY] = 0
    norms: Floats = np.sqrt(energy)
    return norms


def ln_norms_of(energy: Floats) -> Floats:
    """Return ln‖h‖ of ‖h‖² as `States` has it, for those who need nothing else of the states."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.log(norms_of(energy))
    return found


class States:
    """States of some rows, shape (rows, H), with what is computed of them once. Takes the array over."""

    def __init__(self, values: Floats, into: Floats | None = None) -> None:
        """``into``: memory for the squares."""
        self.values = values
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self.squares: Floats = np.multiply(
                values, values, out=into[: len(values)] if into is not None else None
            )
            norms = norms_of(energies_of(values))
            self.ln_norms: Floats = np.log(norms)
            """−∞ for rows of zeros (or below `LEAST_ENERGY`), not finite where a value is not."""
        self.is_good = np.isfinite(self.ln_norms)
        self.scale: Floats = np.divide(1, norms, out=np.zeros_like(norms), where=self.is_good)
        """1/‖h‖; 0 for rows without a norm, which then count nowhere."""
        if not self.is_good.all():
            self.values[~self.is_good] = 0
            self.squares[~self.is_good] = 0

    def projected(self, projection: Floats) -> Floats:
        """Return directions u = h/‖h‖ through a projection, shape (rows, columns)."""
        result: Floats = (self.values @ projection) * self.scale[:, None]
        return result
