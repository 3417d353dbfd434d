"""Acceptance by draft position from histograms of whole requests (pure).

With h[j] = cycles that accepted exactly j drafts, reached(k) = Σ_{j ≥ k} h[j] and cycles = reached(0):

survival     S_k = reached(k) / cycles            P(at least k drafts accepted)
conditional  α_k = reached(k) / reached(k − 1)    P(draft k accepted, given that all before it were)

so that S_k = α_1 · … · α_k and τ = 1 + Σ S_k. Intervals treat each request as one cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.statistics import Floats, Ratio, clustered_ratio

LENGTH_STEP = 0.25
"""Width of a class of accept lengths, in tokens per cycle."""


@dataclass(frozen=True, slots=True)
class Position:
    """One draft position. ``cycles`` ≥ ``offered`` (all before it accepted) ≥ ``accepted``."""

    position: int
    cycles: int
    offered: int
    accepted: int
    survival: Ratio
    conditional: Ratio


def positions_of(histograms: NDArray[np.int64]) -> list[Position]:
    """Return positions 1…K; ``histograms`` has shape (requests, K + 1)."""
    reached = np.cumsum(histograms[:, ::-1], axis=1)[:, ::-1].astype(np.float64)
    totals = reached.sum(axis=0)
    return [
        Position(
            k, round(totals[0]), round(totals[k - 1]), round(totals[k]),
            share(reached[:, k], reached[:, 0]), share(reached[:, k], reached[:, k - 1]),
        )
        for k in range(1, histograms.shape[1])
    ]  # fmt: skip


def share(y: Floats, x: Floats) -> Ratio:
    """Return Σy/Σx; requests in which nothing was offered say nothing, and a share ends at 0 and 1."""
    y, x = y[x > 0], x[x > 0]
    sums = (float(x.sum()), float(y.sum()), float(x @ x), float(x @ y), float(y @ y))
    ratio = clustered_ratio(len(x), sums)
    if ratio.low is None or ratio.high is None:
        return ratio
    return replace(ratio, low=max(ratio.low, 0.0), high=min(ratio.high, 1.0))


def depth_of(launch: Any, calls: int, proposed: int | None, histogram: Sequence[int]) -> int | None:
    """Return K of a request's cycles; None where it may have varied or is not known.

    ``launch`` says its own K, whether it adapts it, and whether its drafts are a tree (then a cycle proposes
    more drafts than the longest path can accept, so K is only known from the launch).
    """
    longest = max((index for index, steps in enumerate(histogram) if steps), default=0)
    is_tree = (launch.eagle_topk or 1) > 1
    if launch.adaptive:
        return None
    depth: int | None = launch.num_steps
    if not is_tree and proposed is not None and proposed % calls == 0:
        depth = proposed // calls
    return depth if depth is not None and longest <= depth else None


def request_lengths(histograms: NDArray[np.int64]) -> Floats:
    """Return τ of each request, shape (requests,)."""
    drafts = histograms @ np.arange(histograms.shape[1])
    return np.asarray(1 + drafts / histograms.sum(axis=1))


def length_classes(lengths: Floats, depth: int) -> tuple[list[float], list[int]]:
    """Return (lower bounds, requests in each class) from 1 to K + 1; the last class holds K + 1 itself."""
    bounds = 1 + LENGTH_STEP * np.arange(round(depth / LENGTH_STEP) + 1)
    place = np.floor((lengths - 1) / LENGTH_STEP + 1e-9).astype(np.int64)
    counts = np.bincount(np.clip(place, 0, len(bounds) - 1), minlength=len(bounds))
    return bounds.tolist(), counts.tolist()
