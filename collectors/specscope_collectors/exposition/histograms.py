"""The ``_bucket``, ``_sum`` and ``_count`` samples of one raw histogram → one `HistogramState`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

from specscope_collectors.exposition.parts import ContradictionError
from specscope_collectors.increments import HistogramState


@dataclass(slots=True)
class RawHistogram:
    """Samples of one histogram as they come in."""

    buckets: dict[float, float] = field(default_factory=dict)
    """Upper bound (``le``) → cumulative count."""
    sum: float | None = None
    count: float | None = None

    def add(self, suffix: str, bound: str | None, value: float) -> None:
        """Take one sample; raise `ContradictionError` if its bound is no number."""
        if suffix == "_sum":
            self.sum = value
        elif suffix == "_count":
            self.count = value
        else:
            self.buckets[_bound(bound)] = value

    def state(self) -> HistogramState:
        """Return per-bucket counts; raise `ContradictionError` if incomplete or impossible."""
        if self.sum is None or self.count is None or math.inf not in self.buckets:
            raise ContradictionError("incomplete histogram: sum, count or the +Inf bucket is missing")
        bounds = sorted(self.buckets)
        cumulative = [self.buckets[bound] for bound in bounds]
        if any(later < earlier for earlier, later in pairwise([0.0, *cumulative])):
            raise ContradictionError("histogram whose buckets fall with le")
        if cumulative[-1] != self.count:
            raise ContradictionError(
                f"histogram with count {self.count:g} and +Inf bucket {cumulative[-1]:g}"
            )
        return HistogramState(
            tuple(bounds[:-1]),
            tuple(later - earlier for earlier, later in pairwise([0.0, *cumulative])),
            self.count,
            self.sum,
        )


def _bound(text: str | None) -> float:
    try:
        bound = float(text or "")
    except ValueError:
        bound = math.nan
    if math.isnan(bound) or bound == -math.inf:
        raise ContradictionError(f"histogram bucket with le={text!r}")
    return bound
