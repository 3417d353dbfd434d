"""Sums that only grow, over a bounded number of label sets."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from specscope_probe.buckets import ALL, OVERFLOW, batch_bucket
from specscope_probe.phases import PHASES, PREFILL, Timing

log = logging.getLogger("specscope_probe")

WARM_UP_CYCLES = 2
"""First cycles of each kind, batch bucket and D: they hold compilation and first use (seconds, once)."""

MAX_SHAPES = 12
"""(batch bucket, D) of one rank that get label sets of their own: every bucket of one D, and some of another.
Later ones share one, which is logged; they are counted under ``more``."""

MANY_SHAPES = "specscope: over %d combinations of batch size and D; times of the others are added up as %r"

MAX_REMEMBERED = 4096
"""Batch sizes whose label set is looked up instead of made."""


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """What decides how long a cycle takes. Label values."""

    kind: str
    batch: str
    num_draft_tokens: str
    clock: str
    """``device`` or ``host``."""


@dataclass(slots=True)
class Sums:
    """Cycles of one shape and their seconds."""

    cycles: int = 0
    seconds: float = 0.0
    phases: list[float] = field(default_factory=list)
    """In the order of `PHASES`."""
    warm_up_cycles: int = 0
    warm_up_seconds: float = 0.0


class TimeTally:
    """Cycle times by shape. At most `MAX_SHAPES` × kinds sets of the best clock, however long it runs.

    Where there is a device, the host only launches work: its times are not split.
    """

    def __init__(self, *, split_clock: str | None, max_shapes: int = MAX_SHAPES) -> None:
        self.sums: dict[Shape, Sums] = {}
        self._split_clock = split_clock
        """Clock whose times are split by batch size and D; None: none."""
        self._max_shapes = max_shapes
        self._shapes: dict[tuple[str, int, int, str], Shape] = {}
        self._labelled: set[tuple[str, str]] = set()

    def shape(self, kind: str, requests: int, num_draft_tokens: int, clock: str) -> Shape:
        """Return the label set of a cycle."""
        key = (kind, requests, num_draft_tokens, clock)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._new_shape(kind, requests, num_draft_tokens, clock)
            if len(self._shapes) < MAX_REMEMBERED:
                self._shapes[key] = shape
        return shape

    def add(self, shape: Shape, timing: Timing, unit: float) -> None:
        """Add one cycle in units of ``unit`` seconds; the first ones of a shape are kept apart."""
        cycle, parts = timing
        sums = self.sums.get(shape)
        if sums is None:
            # Never published half made: the exporting thread reads while this one adds.
            sums = self.sums[shape] = Sums(phases=[0.0] * len(PHASES[shape.kind]))
        if sums.warm_up_cycles < WARM_UP_CYCLES:
            sums.warm_up_cycles += 1
            sums.warm_up_seconds += cycle * unit
            return
        sums.cycles += 1
        sums.seconds += cycle * unit
        phases = sums.phases
        for index, part in enumerate(parts):
            phases[index] += part * unit

    def _new_shape(self, kind: str, requests: int, num_draft_tokens: int, clock: str) -> Shape:
        if kind == PREFILL:  # what a prefill takes depends on tokens, not on requests
            return Shape(kind, ALL, "0", clock)
        if clock != self._split_clock:
            return Shape(kind, ALL, ALL, clock)
        label = (batch_bucket(requests), str(num_draft_tokens))
        if label not in self._labelled:
            if len(self._labelled) >= self._max_shapes:
                label = (OVERFLOW, OVERFLOW)
                if label not in self._labelled:
                    log.warning(MANY_SHAPES, self._max_shapes, OVERFLOW)
            self._labelled.add(label)
        return Shape(kind, label[0], label[1], clock)
