"""Which rows of a forward are looked at, decided on the CPU, so that ranks of a group decide alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

HEAD = 4
"""Positions 0 … HEAD − 1 are a class of their own."""
MOST_HEADS = 4
"""One row in so many is kept for first positions."""


def choose_prefill(
    prefixes: Sequence[int], lengths: Sequence[int], skipped: Sequence[bool], budget: int, turn: int
) -> tuple[Integers, Integers]:
    """Return (rows, request of each row) of a prefill.

    First positions come first, as far as a quarter of the budget goes; the rest are taken at a regular
    stride over all requests, whose beginning moves with ``turn``.
    """
    places, owners, heads, head_owners = [], [], [], []
    start = 0
    for request, (prefix, length) in enumerate(zip(prefixes, lengths, strict=True)):
        if not skipped[request]:
            first = min(max(HEAD - prefix, 0), length)
            heads.append(np.arange(start, start + first))
            head_owners.append(np.full(first, request))
            places.append(np.arange(start + first, start + length))
            owners.append(np.full(length - first, request))
        start += length
    head, head_owner = _joined(heads)[: budget // MOST_HEADS], _joined(head_owners)[: budget // MOST_HEADS]
    place, owner = _joined(places), _joined(owners)
    stride = _stride(len(place), budget - len(head))
    taken = slice(turn % stride, None, stride)
    return np.concatenate((head, place[taken])), np.concatenate((head_owner, owner[taken]))


def choose_verify(depth: int, skipped: Sequence[bool], budget: int, turn: int) -> tuple[Integers, Integers]:
    """Return (rows, request of each row) of a verify forward of ``depth`` rows a request: whole requests."""
    requests = np.flatnonzero(~np.asarray(skipped, bool))
    stride = _stride(len(requests), max(budget // depth, 1))
    chosen = requests[turn % stride :: stride]
    rows = (chosen[:, None] * depth + np.arange(depth)).ravel()
    return rows[:budget], np.repeat(chosen, depth)[:budget]


def _stride(candidates: int, wanted: int) -> int:
    return max(-(-candidates // max(wanted, 1)), 1)


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64)
