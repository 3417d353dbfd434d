"""Profiles of all places of a reference, stacked, so that one window is compared with all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.states.sums import Floats, Integers, Sums, UnequalError

LEAST_REFERENCE_ROWS = 4
"""Rows of a token id in a reference from which on its mean direction is used."""
VARIANCE_FLOOR = 1e-3
"""Of the median variance of a place's channels: below it a channel is as good as constant."""
SAME_DIRECTION = 1e-3
"""1 − cos from which down two directions are the same: its logarithm would say more than is known."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the states of a profile stand."""

    name: str
    """In words: ``boundary 3``, ``training slot 1``, ``last state``."""
    boundary: int | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """Distances of one window to every place. NaN: it has nothing to compare."""

    distances: Floats
    rows: int
    """Rows of the window that they rest on."""
    ids: int = 0
    """Token ids that both sides know."""


@dataclass(frozen=True, slots=True)
class Bank:
    """Places of one reference, all of one hidden size and projection."""

    places: tuple[Place, ...]
    sums: tuple[Sums, ...]
    hidden_size: int
    projection: str
    token_ids: Integers
    """That every place has enough rows of, ascending."""
    units: NDArray[np.float32]
    """Mean direction of each token id, projected, of length 1: shape (places, ids, projection size)."""
    precision: Floats
    """1 / (2·variance) of each channel: shape (places, hidden_size)."""
    pull: Floats
    """2·precision·mean."""
    constant: Floats
    """What of the negative log-likelihood does not depend on the window: shape (places,)."""
    by_boundary: dict[int, int] = field(default_factory=dict)
    """Boundary → its place."""

    def vcos(self, window: Sums) -> Scores:
        """Return the geometric mean of 1 − cos of the mean unit vectors of each token id that both know.

        Ids that a text uses unlike training are far from every place; in an arithmetic mean these few would
        decide which place is nearest. Each id counts by the root of the window's rows on it: a direction of
        one row is a noisy one, and the commonest ids are not to decide alone.
        """
        return self.vcos_of([window])[0]

    def vcos_of(self, windows: Sequence[Sums]) -> list[Scores]:
        """Return the same of many windows at once."""
        distances, rows = self.by_id(windows)
        weights = np.sqrt(rows)
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.einsum("wpk,wk->wp", _logs(distances), weights) / weights.sum(axis=1)[:, None]
        return [
            Scores(mean, int(each.sum()), int((each > 0).sum()))
            for mean, each in zip(np.exp(logs), rows, strict=True)
        ]

    def leads(self, window: Sums, place: int) -> Floats:
        """Return by how many standard errors a place is nearer by `vcos` than each other one.

        The shape is (places,). The error is that of a weighted mean over token ids, of how much nearer each
        of them finds it; it holds what text does to single ids, which more rows do not cure. ∞ for the place
        itself; NaN for fewer than two ids.
        """
        distances, rows = self.by_id([window])
        known = rows[0] > 0
        weights = np.sqrt(rows[0][known])
        weights /= weights.sum()
        logs = _logs(distances[0][:, known])
        nearer = logs - logs[place]
        mean = nearer @ weights
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.square(nearer - mean[:, None]) @ np.square(weights)
            found: Floats = mean / np.sqrt(spread / (1 - np.square(weights).sum()))
        found[place] = np.inf
        return found

    def by_id(self, windows: Sequence[Sums]) -> tuple[Floats, Floats]:
        """Return 1 − cos by place and token id of the bank, shape (windows, places, ids), and rows of each
        id, shape (windows, ids): 0 where a window has none, or its directions are in another projection.
        """
        served, rows = self._served(windows)
        distances = self._distances(served)
        rows[~np.isfinite(distances).all(axis=1)] = 0
        return np.nan_to_num(distances), rows

    def redrawn(self, windows: Sequence[Sums], counts: Floats) -> Floats:
        """Return the mean 1 − cos by rows of sums in which window w counts counts[round, w] times, shape
        (rounds, places).
        """
        served, rows = self._served(windows)
        drawn = counts @ rows
        distances = self._distances(np.tensordot(counts.astype(np.float32), served, axes=1))
        known = np.where(np.isfinite(distances).all(axis=1), drawn, 0)
        total = np.maximum(known.sum(axis=1, keepdims=True), 1)
        mean: Floats = np.einsum("rpk,rk->rp", np.nan_to_num(distances), known) / total
        return mean

    def _served(self, windows: Sequence[Sums]) -> tuple[NDArray[np.float32], Floats]:
        """Return Σu of each token id of the bank, shape (windows, ids, size), and rows of each."""
        served = np.zeros((len(windows), len(self.token_ids), self.units.shape[2]), np.float32)
        rows = np.zeros((len(windows), len(self.token_ids)))
        for index, window in enumerate(windows):
            mine, theirs = self._shared(window)
            if len(mine):
                served[index, mine] = window.token_directions[theirs]
                rows[index, mine] = window.token_rows[theirs]
        return served, rows

    def _shared(self, window: Sums) -> tuple[Integers, Integers]:
        """Return where the ids that both know stand here and there."""
        size = window.token_directions.shape[1]
        if not window.projection or window.projection != self.projection or size != self.units.shape[2]:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        _, mine, theirs = np.intersect1d(
            self.token_ids, window.token_ids, assume_unique=True, return_indices=True
        )
        return mine, theirs

    def _distances(self, served: NDArray[np.float32]) -> Floats:
        """Return 1 − cos of vectors (n, ids, size) with every place, shape (n, places, ids)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            served = served / np.linalg.norm(served, axis=2, keepdims=True)
        cosines = np.matmul(self.units.transpose(1, 0, 2), served.transpose(1, 2, 0))
        found: Floats = 1 - cosines.transpose(2, 1, 0).astype(np.float64)
        return found

    def dnll(self, window: Sums) -> Scores:
        """Return the mean negative log-likelihood of unit vectors, in nats per row and channel.

        Channels are independent Gaussians with the mean and variance of the place. Needs no token ids.
        """
        return self.dnll_of([window])[0]

    def own_dnll(self, window: Sums) -> Scores:
        """Return the same with variances that are fitted to the window, above the least that there can be.

        Text changes how much channels vary, and in deep layers that can outweigh a step of one layer. Of a
        Gaussian of known mean μ the likelihood is greatest for the variance v + (m − μ)², with the window's
        own mean m and variance v; so it is ½·ln(1 + (m − μ)²/v) short of what μ = m would give.
        """
        width = self.precision.shape[1]
        directions = window.directions, window.direction_squares
        if not width or not window.has_directions or any(len(each) != width for each in directions):
            return Scores(np.full(len(self.places), np.nan), 0)
        mean, square = (each / window.norms.rows for each in directions)
        variance = np.maximum(square - mean * mean, 0)
        floor = max(VARIANCE_FLOOR * float(np.median(variance)), np.finfo(np.float64).tiny)
        apart = mean - self.pull / (2 * self.precision)
        found = 0.5 * np.log1p(apart * apart / np.maximum(variance, floor)).mean(axis=1)
        return Scores(found, window.norms.rows)

    def dnll_of(self, windows: Sequence[Sums]) -> list[Scores]:
        """Return the same of many windows at once."""
        width = self.precision.shape[1]
        mean, square = np.full((2, width, len(windows)), np.nan)
        for index, window in enumerate(windows):
            if window.has_directions and len(window.directions) == len(window.direction_squares) == width:
                mean[:, index] = window.directions / window.norms.rows
                square[:, index] = window.direction_squares / window.norms.rows
        found = (self.precision @ square - self.pull @ mean + self.constant[:, None]) / self.hidden_size
        if not width:
            found = np.full((len(self.places), len(windows)), np.nan)
        return [
            Scores(column, 0 if np.isnan(column).all() else window.norms.rows)
            for column, window in zip(found.T, windows, strict=True)
        ]


def _logs(distances: Floats) -> Floats:
    found: Floats = np.log(np.maximum(distances, SAME_DIRECTION))
    return found


def bank_of(places: Sequence[Place], sums: Sequence[Sums]) -> Bank:
    """Stack profiles. Raises UnequalError when there are none, or they do not belong together."""
    if not places or len(places) != len(sums):
        raise UnequalError("a reference has no profile to compare with")
    sizes = sorted({each.hidden_size for each in sums})
    if len(sizes) > 1:
        raise UnequalError(f"a reference has profiles of hidden sizes {', '.join(map(str, sizes))}")
    ids, units, projection = _units(sums)
    precision, pull, constant = _likelihood(sums, sizes[0])
    by_boundary = {
        place.boundary: index
        for index, place in reversed(list(enumerate(places)))
        if place.boundary is not None
    }
    return Bank(
        tuple(places), tuple(sums), sizes[0], projection, ids, units, precision, pull, constant, by_boundary
    )


def _units(sums: Sequence[Sums]) -> tuple[Integers, NDArray[np.float32], str]:
    names = {each.projection for each in sums}
    widths = {each.token_directions.shape[1] for each in sums}
    common: NDArray[np.int64] = sums[0].token_ids
    for each in sums:
        known = each.token_ids[each.token_rows >= LEAST_REFERENCE_ROWS]
        common = np.intersect1d(common, known, assume_unique=True)
    if len(names) != 1 or len(widths) != 1 or names == {""} or not len(common):
        return np.zeros(0, np.int64), np.zeros((len(sums), 0, 0), np.float32), ""
    vectors = np.stack([each.token_directions[np.searchsorted(each.token_ids, common)] for each in sums])
    lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
    units = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return common, units, names.pop()


def _likelihood(sums: Sequence[Sums], hidden_size: int) -> tuple[Floats, Floats, Floats]:
    """Return precision, pull and constant; without sums of directions, of shape (places, 0)."""
    arrays = [(each.directions, each.direction_squares) for each in sums if each.has_directions]
    if len(arrays) < len(sums) or any(len(array) != hidden_size for pair in arrays for array in pair):
        empty = np.zeros((len(sums), 0))
        return empty, empty, np.zeros(len(sums))
    rows = np.array([[each.norms.rows] for each in sums], np.float64)
    mean = np.stack([pair[0] for pair in arrays]) / rows
    variance = np.stack([pair[1] for pair in arrays]) / rows - mean * mean
    floor = VARIANCE_FLOOR * np.median(np.maximum(variance, 0), axis=1, keepdims=True)
    variance = np.maximum(variance, np.maximum(floor, np.finfo(np.float64).tiny))
    precision = 0.5 / variance
    constant = (precision * mean * mean + 0.5 * np.log(2 * np.pi * variance)).sum(axis=1)
    return precision, 2 * precision * mean, constant
