"""Profiles as arrays, and their sum: what two windows, ranks or launches add up to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import LnNorms, StateProfile

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BIN_WIDTH = 0.02
"""Nats; the width that the probe and references use."""


@dataclass(frozen=True)
class Norms:
    """Rows by bins of ln‖h‖: ``counts[i]`` rows lie in ``[first + i, first + i + 1)·width``."""

    first: int
    counts: Integers
    width: float = BIN_WIDTH
    sum: float = 0.0
    sum_of_squares: float = 0.0

    @cached_property
    def rows(self) -> int:
        """Rows that have a norm."""
        return int(self.counts.sum())


NO_NORMS = Norms(0, np.zeros(0, np.int64))
MAX_BINS = 100_000


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over rows of one place, phase and class. u = h / ‖h‖. Arrays may be empty: not kept."""

    hidden_size: int
    rows: int
    requests: int
    """At least. Of sums it is what is certain: the most of one part, or all that were new in their part."""
    norms: Norms
    directions: Floats
    """Σu, shape (hidden_size,)."""
    direction_squares: Floats
    """Σu²."""
    energy: Floats
    """Σh²."""
    token_ids: Integers
    """Ascending."""
    token_rows: Integers
    token_directions: Floats
    """Σu of each token id, projected: shape (ids, projection size)."""
    projection: str = ""
    profiles: int = 1
    """How many were added up."""
    energy_rows: int = 0
    """Rows that Σh² is of: without those that repeat a token id at its position, where these were told."""
    new_requests: int | None = None
    """Requests that no earlier profile of the place had; None = it was not told."""

    @property
    def common_rows(self) -> int:
        """Rows on token ids that directions are kept of."""
        return int(self.token_rows.sum())

    @property
    def has_directions(self) -> bool:
        """Whether there are sums of unit vectors."""
        return bool(len(self.directions)) and self.norms.rows > 0


class UnequalError(ValueError):
    """Profiles that cannot be added up or compared; the text says why."""


def nothing(hidden_size: int) -> Sums:
    """Return the sums of no rows."""
    none, empty = np.zeros(0, np.int64), np.zeros(0)
    return Sums(hidden_size, 0, 0, NO_NORMS, empty, empty, empty, none, none, np.zeros((0, 0)), profiles=0)


def norms_of(sketch: LnNorms) -> Norms:
    """Return a sketch of the contract as arrays. Raises UnequalError when it spans too many bins."""
    if not sketch.bins:
        return Norms(0, np.zeros(0, np.int64), sketch.bin_width)
    first, last = min(sketch.bins), max(sketch.bins)
    if last - first > MAX_BINS:
        raise UnequalError(f"norms span {last - first} bins; a profile has at most {MAX_BINS}")
    counts = np.zeros(last - first + 1, np.int64)
    places = np.fromiter(sketch.bins.keys(), np.int64, len(sketch.bins))
    counts[places - first] = np.fromiter(sketch.bins.values(), np.int64, len(sketch.bins))
    return Norms(first, counts, sketch.bin_width, sketch.sum, sketch.sum_of_squares)


def sums_of(profile: StateProfile) -> Sums:
    """Return a profile as arrays. Raises UnequalError."""
    ids = np.array(profile.token_ids, np.int64)
    rows = np.array(profile.token_rows, np.int64)
    vectors = _floats(profile.token_directions)
    vectors = vectors.reshape(len(ids), -1) if len(vectors) else np.zeros((len(ids), 0))
    order = np.argsort(ids, kind="stable")
    norms = norms_of(profile.ln_norms)
    return Sums(
        profile.hidden_size, profile.rows, profile.requests, norms,
        _floats(profile.direction_sum), _floats(profile.direction_sum_of_squares),
        _floats(profile.sum_of_squares), ids[order], rows[order], vectors[order], profile.projection,
        energy_rows=profile.invariants.get("distinct_rows", norms.rows), new_requests=profile.new_requests,
    )  # fmt: skip


def _floats(array: bytes) -> Floats:
    return np.frombuffer(array, "<f4").astype(np.float64)


def added(parts: Sequence[Sums]) -> Sums:
    """Return the sum of profiles of one place. Raises UnequalError for none, or unequal hidden sizes.

    Where some parts keep no sums of a kind, or of another projection, the sum has none of that kind.
    """
    if not parts:
        raise UnequalError("there are no profiles to add up")
    if len(parts) == 1:
        return parts[0]
    sizes = sorted({part.hidden_size for part in parts})
    if len(sizes) > 1:
        raise UnequalError(f"profiles of hidden sizes {', '.join(map(str, sizes))} do not add up")
    ids, rows, vectors, projection = _tokens(parts)
    told = [part.new_requests for part in parts if part.new_requests is not None]
    new = sum(told) if told else None
    return Sums(
        sizes[0], sum(part.rows for part in parts), max(new or 0, *(part.requests for part in parts)),
        added_norms([part.norms for part in parts]), _total([part.directions for part in parts]),
        _total([part.direction_squares for part in parts]), _total([part.energy for part in parts]),
        ids, rows, vectors, projection, sum(part.profiles for part in parts),
        sum(part.energy_rows for part in parts), new,
    )  # fmt: skip


def _total(arrays: Sequence[Floats]) -> Floats:
    if any(len(array) != len(arrays[0]) for array in arrays):
        return np.zeros(0)
    total: Floats = np.sum(arrays, axis=0)
    return total


def _tokens(parts: Sequence[Sums]) -> tuple[Integers, Integers, Floats, str]:
    kept = [part for part in parts if part.projection and len(part.token_ids)]
    names = {part.projection for part in kept}
    sizes = {part.token_directions.shape[1] for part in kept}
    if len(names) != 1 or len(sizes) != 1:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 0)), ""
    ids = np.unique(np.concatenate([part.token_ids for part in kept]))
    rows = np.zeros(len(ids), np.int64)
    vectors = np.zeros((len(ids), sizes.pop()))
    for part in kept:
        places = np.searchsorted(ids, part.token_ids)
        rows[places] += part.token_rows
        vectors[places] += part.token_directions
    return ids, rows, vectors, names.pop()


def added_norms(parts: Iterable[Norms]) -> Norms:
    """Return the sum of sketches. Raises UnequalError when their bins have unequal widths."""
    kept = [part for part in parts if len(part.counts)]
    if not kept:
        return NO_NORMS
    if len({part.width for part in kept}) > 1:
        raise UnequalError("norms in bins of unequal widths do not add up")
    first = min(part.first for part in kept)
    last = max(part.first + len(part.counts) for part in kept)
    if last - first > MAX_BINS:
        raise UnequalError(f"norms span {last - first} bins; a profile has at most {MAX_BINS}")
    counts = np.zeros(last - first, np.int64)
    for part in kept:
        start = part.first - first
        counts[start : start + len(part.counts)] += part.counts
    return Norms(
        first, counts, kept[0].width, sum(part.sum for part in kept),
        sum(part.sum_of_squares for part in kept),
    )  # fmt: skip


def counted(counts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return invariant counts added up by name."""
    found: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            found[name] = found.get(name, 0) + int(count)
    return found
