"""Limits beyond which a row is a sink, from all rows seen so far, and the commonest token ids."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from specscope_probe.states.rows import HEAD
from specscope_probe.states.samples import Floats, Sample
from specscope_probe.states.sketch import NormSketch, sink_limit

ROWS_FOR_IDS = 4_096
"""Rows after which the commonest ids are fixed for good."""
COMMON_IDS = 64
ENOUGH_BEYOND = 64
"""Rows of which most are beyond a limit, from which on it was learnt from other states."""


class Learnt:
    """Filled by the probe's thread; `limits` and `token_ids` are read by the scheduler's."""

    def __init__(self, slots: int, token_ids: tuple[int, ...] = ()) -> None:
        self.limits: Floats = np.full(slots, -np.inf, np.float32)
        """ln‖h‖ by slot; −∞: not known yet."""
        self.token_ids = tuple(sorted(token_ids))
        self.is_known = False
        self._sketches = [NormSketch() for _ in range(slots)]
        self._seen = 0
        self._judged = 0
        self._beyond = np.zeros(slots, np.int64)
        """Rows beyond the limits of those that were judged since the limits were last set."""
        self._ids: Counter[int] = Counter()
        self._rows = 0

    def add(self, sample: Sample) -> None:
        """Learn from one sample."""
        is_body = sample.positions >= HEAD
        self._judge(sample, is_body)
        self._seen += int(is_body.sum())
        for slot, sketch in enumerate(self._sketches):
            ln_norms = sample.ln_norms[is_body, slot]
            sketch.add(ln_norms[np.isfinite(ln_norms)])
        if not self.is_known:
            self.update_limits()
        if not self.token_ids:
            self._rows += len(sample.ids)
            self._ids.update(sample.ids[sample.ids >= 0].tolist())
            if self._rows >= ROWS_FOR_IDS:
                self.token_ids = tuple(sorted(token for token, _ in self._ids.most_common(COMMON_IDS)))
                self._ids.clear()

    def _judge(self, sample: Sample, is_body: NDArray[np.bool_]) -> None:
        """Begin anew when most rows of a slot are beyond its limit: sinks are few, so its states are others.

        Other layers were captured before, or the weights have been exchanged.
        """
        if not self.is_known:
            return
        self._judged += int(is_body.sum())
        self._beyond += (sample.ln_norms[is_body] > self.limits).sum(axis=0)
        if self._judged >= ENOUGH_BEYOND and 2 * self._beyond.max() > self._judged:
            self._sketches = [NormSketch() for _ in self._sketches]
            self._seen, self.is_known = 0, False
            self.limits = np.full(len(self._sketches), -np.inf, np.float32)

    def update_limits(self) -> None:
        """Set the limits anew if enough rows were seen."""
        self._judged = 0
        self._beyond[:] = 0
        limits = [sink_limit(sketch.bins, self._seen) for sketch in self._sketches]
        if all(limit is not None for limit in limits):
            self.limits = np.array(limits, np.float32)
            self.is_known = True
