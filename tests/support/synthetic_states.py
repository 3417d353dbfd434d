"""A small target made of random numbers whose residual stream grows as real ones do, and profiles of it.

Boundaries next to each other are alike (cosines of .93 to .98 a row), norms grow with depth, a token's row
depends on the token, the context and the domain of the text; the embedding on the token alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.document import LastState, Reference
from specscope_collectors.references.projection import NAME, projection_of
from specscope_collectors.references.row_classes import sketch_of

Floats = NDArray[np.float64]
COMPARED = 1_000
"""Rows that are compared with each other."""
MODEL = "org/small-target"
MADE_MS = 1_772_000_000_000


@dataclass(frozen=True)
class Text:
    """Rows of some requests: token ids and the context that they stand in."""

    ids: NDArray[np.int64]
    requests: NDArray[np.int64]
    context: Floats


@dataclass(frozen=True)
class Target:
    """A model of ``layers`` layers; everything follows from the seed."""

    hidden_size: int = 96
    layers: int = 12
    vocabulary: int = 48
    seed: int = 7
    growth: Sequence[float] = (1.0, 6.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.02, 1.1, 1.1, 1.1, 1.2, 1.2)

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """Embeddings, and of each layer a direction for each token and a map of the context."""
        draw = np.random.default_rng(self.seed)
        embedding = draw.normal(size=(self.vocabulary, self.hidden_size))
        own = draw.normal(size=(self.layers, self.vocabulary, self.hidden_size))
        common = draw.normal(size=(self.layers, 1, self.hidden_size))
        maps = draw.normal(size=(self.layers, 8, self.hidden_size)) / np.sqrt(8)
        return embedding, own + common, maps

    def text(self, rows: int, requests: int, seed: int, shift: float = 0.0) -> Text:
        """Return rows of text; ``shift`` moves it to another domain (other words, other contexts)."""
        draw = np.random.default_rng([self.seed, seed])
        weights = 1 / (np.arange(self.vocabulary) + 2)
        if shift:
            weights = weights * np.exp(shift * np.random.default_rng(99).normal(size=self.vocabulary))
        ids = draw.choice(self.vocabulary, rows, p=weights / weights.sum())
        owners = np.arange(rows) % requests
        topic = draw.normal(size=(requests, 8))
        domain = shift * np.random.default_rng(98).normal(size=8)
        context = 0.6 * topic[owners] + 0.8 * draw.normal(size=(rows, 8)) + domain
        return Text(ids, owners, context)

    def states(self, text: Text, boundary: int) -> Floats:
        """Return the residual stream after so many layers, shape (rows, hidden size)."""
        embedding, own, maps = self._parts
        stream = embedding[text.ids]
        for layer in range(boundary):
            update = own[layer][text.ids] + text.context @ maps[layer]
            update /= np.linalg.norm(update, axis=1, keepdims=True)
            norms = np.linalg.norm(stream, axis=1, keepdims=True)
            share = 4.0 if layer == 0 else 0.33
            stream = stream + share * norms * update
            stream *= self.growth[layer + 1] / np.sqrt(1 + share * share)
        return stream

    def output(self, text: Text, boundary: int) -> Floats:
        """Return what the layer before the boundary adds, without its residual."""
        return self.states(text, boundary) - self.states(text, boundary - 1)


def rotated(states: Floats, seed: int = 3) -> Floats:
    """Return states turned by a random rotation: all norms are as before."""
    return states @ _turn(states.shape[1], seed)


@cache
def _turn(size: int, seed: int) -> Floats:
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    return turn


def quantised(states: Floats, noise: float, seed: int = 4) -> Floats:
    """Return states with noise of that share of each row's norm, as a target of few bits has."""
    draw = np.random.default_rng(seed).normal(size=states.shape)
    norms = np.linalg.norm(states, axis=1, keepdims=True) / np.linalg.norm(draw, axis=1, keepdims=True)
    return states + noise * norms * draw


def post_norm(states: Floats, weight: Floats) -> Floats:
    """Return states behind an RMS norm with that weight."""
    rms = np.sqrt((states * states).mean(axis=1, keepdims=True))
    return states / rms * weight


def profile_of(
    states: Floats, text: Text, known_ids: Sequence[int] = (),
    is_repeated: NDArray[np.bool_] | None = None, **more: Any,
) -> StateProfile:  # fmt: skip
    """Return the profile of rows of the class ``other``, as the probe makes it.

    ``is_repeated``: rows that repeat those of a shared prefix; None = an older probe that told none apart.
    """
    values = states.astype(np.float32).astype(np.float64)
    norms = np.linalg.norm(values, axis=1)
    is_good = np.isfinite(norms) & (norms > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ln_norms = np.log(norms).astype(np.float32)
    units = np.where(is_good[:, None], values / np.where(is_good, norms, 1)[:, None], 0)
    values = np.where(is_good[:, None], values, 0)
    distinct = values if is_repeated is None else values[~is_repeated]
    found: dict[str, Any] = {
        "time_ms": MADE_MS, "span_ms": 1, "labels": {}, "phase": "prefill", "row_class": "other",
        "hidden_size": states.shape[1], "rows": len(states),
        "requests": len(np.unique(text.requests)), "ln_norms": sketch_of(ln_norms),
        "direction_sum": _bytes(units.sum(axis=0)),
        "direction_sum_of_squares": _bytes((units**2).sum(axis=0)),
        "sum_of_squares": _bytes((distinct**2).sum(axis=0)),
        "invariants": _invariants(values, norms, is_good, text),
    }  # fmt: skip
    ids = sorted(set(known_ids) & set(text.ids[is_good].tolist()))
    if ids:
        members = [is_good & (text.ids == token) for token in ids]
        vectors = np.stack([units[each].sum(axis=0) for each in members]) @ _projection(states.shape[1])
        found |= {
            "token_ids": tuple(ids), "token_rows": tuple(int(each.sum()) for each in members),
            "token_directions": _bytes(vectors), "projection": NAME,
        }  # fmt: skip
    if is_repeated is not None:
        found["invariants"]["distinct_rows"] = int((is_good & ~is_repeated).sum())
    return StateProfile(**(found | more))


def _invariants(values: Floats, norms: Floats, is_good: NDArray[np.bool_], text: Text) -> dict[str, int]:
    zero = int((norms == 0).sum())
    pairs = identical = duplicates = 0
    last: dict[int, int] = {}
    seen: dict[bytes, int] = {}
    for row in np.flatnonzero(is_good)[:COMPARED].tolist():
        token = int(text.ids[row])
        before = last.get(token)
        if before is not None:
            pairs += 1
            identical += bool(np.linalg.norm(values[row] - values[before]) < 1e-3 * norms[before])
        last[token] = row
        duplicates += seen.setdefault(values[row].tobytes(), token) != token
    return {
        "zero_rows": zero, "nonfinite_rows": int((~is_good).sum()) - zero, "equal_id_pairs": pairs,
        "equal_id_pairs_identical": identical, "duplicate_rows": duplicates,
    }  # fmt: skip


def _bytes(array: Floats) -> bytes:
    return np.ascontiguousarray(array, "<f4").tobytes()


@cache
def _projection(hidden_size: int) -> NDArray[np.float32]:
    return projection_of(hidden_size)


IDS = tuple(range(32))
"""Token ids that directions are kept of."""


def reference_of(
    target: Target, boundaries: Sequence[int], name: str = "training", rows: int = 3_000,
    told: Sequence[int | None] | None = None, last: bool = True, shift: float = 0.0, **more: Any,
) -> Reference:  # fmt: skip
    """Return the reference of a training dump with these boundaries in its slots."""
    text = target.text(rows, 96, 1, shift)
    profiles = [
        profile_of(target.states(text, boundary), text, IDS, slot=slot, boundary=boundary)
        for slot, boundary in enumerate(boundaries)
    ]
    if last:
        states = target.states(text, target.layers)
        profiles.append(profile_of(states, text, IDS, boundary=target.layers))
    return _document(
        target, name, rows, profiles=tuple(profiles), boundaries=tuple(boundaries if told is None else told),
        last=LastState(boundary=target.layers, norm="pre_norm") if last else None,
        sink_limits=(None,) * len(profiles), **more,
    )  # fmt: skip


def all_boundaries(target: Target, name: str = "calibration", rows: int = 3_000, **more: Any) -> Reference:
    """Return the reference of all boundaries of a target."""
    text = target.text(rows, 96, 2)
    profiles = tuple(
        profile_of(target.states(text, boundary), text, IDS, boundary=boundary, phase="calibration")
        for boundary in range(target.layers + 1)
    )
    places = tuple(range(target.layers + 1))
    return _document(
        target, name, rows, profiles=profiles, boundaries=places, sink_limits=(None,) * len(places),
        kind="boundaries", **more,
    )  # fmt: skip


def _document(target: Target, name: str, rows: int, **more: Any) -> Reference:
    fixed: dict[str, Any] = {
        "name": name, "made_ms": MADE_MS, "tool": "speculators 0.4.0", "container": "torch",
        "compression": "none", "model": MODEL, "dtype": "bfloat16", "hidden_size": target.hidden_size,
        "boundary_rule": "told", "boundary_source": "told", "files": 96, "requests": 96, "tokens": rows,
        "rows": rows, "budget_rows": rows, "seed": 1, "fingerprint": name, "token_ids": IDS,
    }  # fmt: skip
    return Reference(**(fixed | more))
