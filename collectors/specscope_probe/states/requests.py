"""How many requests rows are of, never more than there were: counts of two windows can be put together."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_SEEN = 16_384
"""Requests of earlier windows that are known again, for each phase and class."""
_POSITIVE = (1 << 63) - 1

Kind = tuple[str, str]
"""Phase, row class."""


def numbers_of(requests: list[Any]) -> NDArray[np.int64]:
    """Return a number for each of the engine's requests, from 0 on: the same in every forward."""
    return np.array([hash(request.rid) & _POSITIVE for request in requests], np.int64)


def owners_named(owners: NDArray[np.int64], names: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return a number for the request of each row.

    Where requests are not known they are −1, −2 and so on in every forward: as many as one forward has are
    certain, and whether two forwards have the same ones nobody knows.
    """
    if names is not None:
        return names[owners]
    places: NDArray[np.int64] = np.unique(owners, return_inverse=True)[1].reshape(-1)
    return -1 - places


def count_of(requests: AbstractSet[int]) -> int:
    """Return how many these are at least: unknown ones may be the known."""
    unknown = sum(each < 0 for each in requests)
    return max(len(requests) - unknown, unknown)


class Seen:
    """Requests of earlier windows; beyond a bound those that were not seen for longest are forgotten."""

    def __init__(self, most: int = MOST_SEEN) -> None:
        self._most = most
        self._known: dict[Kind, dict[int, None]] = {}

    def new_of(self, kind: Kind, requests: AbstractSet[int]) -> int | None:
        """Return how many no earlier window had; None where it is not known which these are."""
        if any(each < 0 for each in requests):
            return None
        known = self._known.get(kind, {})
        return sum(each not in known for each in requests)

    def note(self, kind: Kind, requests: AbstractSet[int]) -> None:
        """Know them again from the next window on."""
        known = self._known.setdefault(kind, {})
        for each in sorted(requests):
            if each >= 0:
                known.pop(each, None)
                known[each] = None
        while len(known) > self._most:
            del known[next(iter(known))]
