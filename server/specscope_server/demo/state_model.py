"""A small target made of random numbers, whose residual stream grows as a real one does (simulated).

Each layer adds a direction that depends on the token and on the context; what it adds is about a third of
the stream, so that neighbouring boundaries have cosines of about .95. The embedding depends on the token
alone. Nothing of a real model is in it; what is said about it is said by the real statistics.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAYERS, HIDDEN_SIZE, VOCABULARY, TOPICS = 61, 64, 48, 8
SEED = 11
FIRST_GROWTH, GROWTH = 6.0, 1.05
FIRST_SHARE, SHARE = 4.0, 0.33

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Text:
    """Rows of some requests: token ids, their requests, and the context that they stand in."""

    ids: NDArray[np.int64]
    requests: NDArray[np.int64]
    context: Floats


def text_of(rows: int, requests: int, seed: int) -> Text:
    """Return rows of requests, some tokens far commoner than others."""
    draw = np.random.default_rng([SEED, seed])
    weights = 1 / (np.arange(VOCABULARY) + 2)
    ids = draw.choice(VOCABULARY, rows, p=weights / weights.sum())
    owners = np.arange(rows) % requests
    topics = draw.normal(size=(requests, TOPICS))
    return Text(ids, owners, 0.6 * topics[owners] + 0.8 * draw.normal(size=(rows, TOPICS)))


@cache
def _weights() -> tuple[Floats, Floats, Floats]:
    draw = np.random.default_rng(SEED)
    embedding = draw.normal(size=(VOCABULARY, HIDDEN_SIZE))
    own = draw.normal(size=(LAYERS, VOCABULARY, HIDDEN_SIZE)) + draw.normal(size=(LAYERS, 1, HIDDEN_SIZE))
    return embedding, own, draw.normal(size=(LAYERS, TOPICS, HIDDEN_SIZE)) / np.sqrt(TOPICS)


def product(one: Floats, other: NDArray[Any]) -> Floats:
    """Return a matrix product in this thread: for matrices this small, threads of a BLAS only wait."""
    found: Floats = np.einsum("ij,jk->ik", one, other)
    return found


def states_of(text: Text, boundaries: Collection[int]) -> dict[int, Floats]:
    """Return the residual stream at some boundaries, each of shape (rows, HIDDEN_SIZE)."""
    embedding, own, maps = _weights()
    stream = embedding[text.ids]
    found = {0: stream} if 0 in boundaries else {}
    for layer in range(max(boundaries)):
        update = own[layer][text.ids] + product(text.context, maps[layer])
        update /= np.linalg.norm(update, axis=1, keepdims=True)
        share, growth = (FIRST_SHARE, FIRST_GROWTH) if layer == 0 else (SHARE, GROWTH)
        norms = np.linalg.norm(stream, axis=1, keepdims=True)
        stream = (stream + share * norms * update) * (growth / np.sqrt(1 + share * share))
        if layer + 1 in boundaries:
            found[layer + 1] = stream
    return found
