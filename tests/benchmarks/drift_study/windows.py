"""Windows of served rows, many at once, as the product's own sums; and faults of the capture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.benchmarks.drift_study.pools import Pool

from specscope_collectors.references.projection import NAME, projection_of
from specscope_collectors.references.row_classes import BIN_WIDTH, sink_limit
from specscope_collectors.states.sums import Norms, Sums

SEED = 43
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Cell:
    """Size of a window."""

    rows: int
    requests: int

    def __str__(self) -> str:
        return f"{self.rows}/{self.requests}"


CELLS = (Cell(64, 8), Cell(256, 32), Cell(1024, 32))


class Rows:
    """Rows of a pool as one captured state, with what windows are added up from."""

    def __init__(self, pool: Pool, states: Floats, token_ids: NDArray[np.int64]) -> None:
        self.requests = pool.arrays["requests"]
        norms = np.linalg.norm(states, axis=1)
        with np.errstate(divide="ignore"):
            self.ln_norms = np.log(norms)
        limit = sink_limit(self.ln_norms)
        self.is_other = self.ln_norms <= (math.inf if limit is None else limit)
        self.units: Floats = (states / np.maximum(norms, 1e-30)[:, None]).astype(np.float32)
        self.squares = self.units * self.units
        self.bins = np.floor(self.ln_norms / BIN_WIDTH).astype(np.int64)
        places = np.searchsorted(token_ids, pool.arrays["ids"]).clip(max=len(token_ids) - 1)
        is_known = token_ids[places] == pool.arrays["ids"]
        self.of_token = [np.flatnonzero(is_known & (places == place)) for place in range(len(token_ids))]
        self.token_ids = token_ids
        self.projected: Floats = self.units @ projection_of(states.shape[1])

    @cached_property
    def by_request(self) -> list[NDArray[np.int64]]:
        """Return the rows of each request."""
        return [np.flatnonzero(self.requests == each) for each in np.unique(self.requests)]


def drawn(captured: Sequence[Rows], cell: Cell, count: int, seed: int) -> NDArray[np.float32]:
    """Return how often each row is in each window, shape (windows, rows): few rows of many requests.

    Windows are of rows that are sinks in none of the states of one pool, as the product's are of a slot's.
    """
    draw = np.random.default_rng([SEED, seed, cell.rows, cell.requests])
    each = cell.rows // cell.requests
    is_other = np.all([rows.is_other for rows in captured], axis=0)
    by_request = [own[is_other[own]] for own in captured[0].by_request]
    taken = np.zeros((count, len(is_other)), np.float32)
    for window in range(count):
        for request in draw.choice(len(by_request), cell.requests, replace=False):
            own = by_request[request]
            taken[window, draw.choice(own, min(each, len(own)), replace=False)] = 1
    return taken


def windows(rows: Rows, taken: NDArray[np.float32]) -> list[Sums]:
    """Return the sums of windows."""
    directions, squares = taken @ rows.units, taken @ rows.squares
    first, width = int(rows.bins.min()), int(rows.bins.max() - rows.bins.min()) + 1
    one_hot = np.zeros((len(rows.bins), width), np.float32)
    one_hot[np.arange(len(rows.bins)), rows.bins - first] = 1
    histograms = np.rint(taken @ one_hot).astype(np.int64)
    tokens = np.stack([taken[:, own] @ rows.projected[own] for own in rows.of_token], axis=1)
    token_rows = np.stack([taken[:, own].sum(axis=1) for own in rows.of_token], axis=1)
    requests = [len(np.unique(rows.requests[line > 0])) for line in taken]
    return [
        _sums(rows, place, requests[place], first, histograms, directions, squares, tokens, token_rows)
        for place in range(len(taken))
    ]


def _sums(
    rows: Rows, place: int, requests: int, first: int, histograms: NDArray[np.int64], directions: Floats,
    squares: Floats, tokens: Floats, token_rows: Floats,
) -> Sums:  # fmt: skip
    seen = np.flatnonzero(token_rows[place])
    empty: NDArray[Any] = np.zeros(0)
    return Sums(
        rows.units.shape[1], int(histograms[place].sum()), requests,
        Norms(first, histograms[place], BIN_WIDTH), directions[place].astype(np.float64),
        squares[place].astype(np.float64), empty, rows.token_ids[seen],
        np.rint(token_rows[place][seen]).astype(np.int64), tokens[place][seen].astype(np.float64), NAME,
    )  # fmt: skip


ROTATION_SEED = 77


def rotation(hidden_size: int) -> Floats:
    """Return a random rotation: norms stay, directions go."""
    draw = np.random.default_rng(ROTATION_SEED)
    found: Floats = np.linalg.qr(draw.normal(size=(hidden_size, hidden_size)))[0].astype(np.float32)
    return found


def captured(pool: Pool, boundary: int, fault: str, norm_weight: Floats) -> Floats:
    """Return the states that a slot holds which is meant to be of a boundary."""
    states = pool.arrays["states"]
    own: Floats = states[:, boundary].astype(np.float32)
    if fault == "rotated":
        return own @ rotation(own.shape[1])
    if fault == "residual missing":
        return own - states[:, boundary - 1].astype(np.float32)
    if fault == "post-norm":
        return norm_weight * own / np.sqrt((own * own).mean(axis=1, keepdims=True))
    return own
