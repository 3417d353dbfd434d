"""Training samples of a made-up model with 24 layers, and served states with a fault of a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specscope_collectors.references.training_rows import TrainingRows
from specscope_collectors.replays.comparing import Floats
from specscope_collectors.replays.pairing import Served
from specscope_collectors.replays.samples import Sample, Training

HIDDEN, LAYERS = 96, 24
SLOTS = (2, 12, 21)
TOKENS, REQUESTS, VOCABULARY = 40, 3, 50


@dataclass(frozen=True)
class Made:
    """States of all boundaries of some requests, shape (boundaries, tokens, H) each, and block outputs."""

    ids: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]
    streams: list[Floats]
    blocks: list[Floats]
    """What the last part of each layer added, which a lost residual leaves alone."""


def make(seed: int = 5) -> Made:
    """Each layer mixes what is there and adds a tenth to a third of its norm."""
    random = np.random.default_rng(seed)
    embedding = random.normal(size=(VOCABULARY, HIDDEN))
    weights = random.normal(size=(LAYERS, HIDDEN, HIDDEN)) / np.sqrt(HIDDEN)
    made = Made([], [], [])
    for _ in range(REQUESTS):
        ids = random.integers(0, VOCABULARY, TOKENS)
        stream = embedding[ids] + random.normal(size=(TOKENS, HIDDEN)) * 0.5
        streams, blocks = [stream], [np.zeros_like(stream)]
        for layer in range(LAYERS):
            scale = np.sqrt((stream**2).mean(axis=1, keepdims=True))
            added = np.tanh(stream / scale @ weights[layer]) * scale * 0.35
            stream = stream + added
            streams.append(stream)
            blocks.append(added)
        made.ids.append(ids)
        made.streams.append(np.stack(streams).astype(np.float32))
        made.blocks.append(np.stack(blocks).astype(np.float32))
    return made


def training_of(made: Made) -> Training:
    """Return the samples as a dump holds them: three slots and the last state, pre-norm."""
    places = [*SLOTS, LAYERS]
    samples = tuple(
        Sample(f"data_{number}.pt", ids, streams[places])
        for number, (ids, streams) in enumerate(zip(made.ids, made.streams, strict=True))
    )
    return Training(samples, HIDDEN, len(SLOTS), True, True, SLOTS, LAYERS)


def rows_of(made: Made) -> list[TrainingRows]:
    """Return rows at all boundaries of some positions."""
    positions = np.arange(0, TOKENS, 2)
    return [
        TrainingRows(f"data_{number}.pt", ids, positions, streams[:, positions])
        for number, (ids, streams) in enumerate(zip(made.ids, made.streams, strict=True))
    ]


def served_of(made: Made, state: Callable[[int, int], Floats]) -> dict[int, Served]:
    """Return what serving had: ``state(request, slot)`` has the shape (tokens, H)."""
    return {
        request: Served(
            np.arange(TOKENS), np.concatenate([state(request, slot) for slot in range(len(SLOTS))], axis=1)
        )
        for request in range(REQUESTS)
    }
