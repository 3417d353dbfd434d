"""Made-up states of a model with a few boundaries, each a step further; and files of a calibration of it."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.boundary_sums import BoundaryNorms, BoundarySums
from specscope_collectors.sources.probe.reading import CaptureRecord, StateFile

Floats = NDArray[np.float32]
HIDDEN, BOUNDARIES, VOCABULARY = 48, 6, 40


class MadeUpModel:
    """Embeddings, and layers that add a fixed step, one by token id, and noise of the request."""

    def __init__(self, seed: int = 3) -> None:
        random = np.random.default_rng(seed)
        self.embedding = random.normal(size=(VOCABULARY, HIDDEN))
        self.steps = random.normal(size=(BOUNDARIES, HIDDEN)) * 1.5
        self.by_token = random.normal(size=(BOUNDARIES, VOCABULARY, HIDDEN))

    def states(self, ids: NDArray[np.int64], seed: int) -> Floats:
        """Return states of shape (boundaries, rows, H)."""
        random = np.random.default_rng(seed)
        stream = self.embedding[ids]
        found = [stream]
        for layer in range(1, BOUNDARIES):
            noise = random.normal(size=stream.shape) * 0.3
            stream = stream + self.steps[layer] + self.by_token[layer][ids] * 0.7 + noise
            found.append(stream)
        return np.stack(found).astype(np.float32)


def sums_of_requests(model: MadeUpModel, requests: Sequence[int], rows: int = 32) -> BoundarySums:
    """Return the sums of requests, each known by its seed; limits and ids are the same for any choice."""
    norms = BoundaryNorms(BOUNDARIES)
    for seed in range(12):
        norms.add(np.arange(rows), model.states(ids_of(seed, rows), seed))
    sums = BoundarySums(HIDDEN, norms.limits(), range(0, VOCABULARY, 2))
    for seed in requests:
        sums.add(np.arange(rows), ids_of(seed, rows), model.states(ids_of(seed, rows), seed))
    return sums


def ids_of(seed: int, rows: int) -> NDArray[np.int64]:
    """Return the token ids of a request."""
    return np.random.default_rng([seed, 1]).integers(0, VOCABULARY, rows)


def write_calibration(path: Path, sums: BoundarySums, created_ms: int, model_class: str = "Made") -> None:
    """Write a file as the probe does; its requests are in no other file."""
    profiles = tuple(
        msgspec.structs.replace(each, new_requests=each.requests) for each in sums.profiles(created_ms)
    )
    capture = CaptureRecord(
        boundaries=tuple(range(BOUNDARIES)), rule="", hidden_size=HIDDEN, width=HIDDEN * BOUNDARIES,
        is_calibration=True,
    )  # fmt: skip
    file = StateFile(
        format=1, created_ms=created_ms, rank={"tp_rank": "0"}, engine_version="0.5.23",
        model_class=model_class, probe_version="0.1", capture=capture,
        sink_limits=tuple(sums.limits), profiles=profiles,
    )  # fmt: skip
    path.write_bytes(gzip.compress(msgspec.json.encode(file)))
