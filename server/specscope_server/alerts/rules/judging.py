"""Turning points into verdicts, for many conditions at once (pure, NumPy)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_server.alerts.rules.reading import Cause
from specscope_server.alerts.rules.reads import Grid, Whys
from specscope_server.kit.signal import Floats, Why

Codes = NDArray[np.uint8]
"""What was found: `OK`, `BREACH`, `ABSENT`, or `UNKNOWN` + `Why`."""
OK, BREACH, UNKNOWN, ABSENT = 0, 1, 10, 255
GONE = UNKNOWN + Why.GONE
CAUSES = {
    Why.NO_DATA: Cause.NO_DATA, Why.IDLE: Cause.IDLE, Why.STALE: Cause.STALE, Why.REFUSED: Cause.REFUSED,
    Why.FEW: Cause.FEW,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts of several conditions on the same points, before samples are weighed."""

    grid: Grid
    """The series that verdicts are about, with the values that alerts show."""
    breach: NDArray[np.bool_]
    """Shape (conditions, series, points)."""
    why: Whys
    """`Why` of each point, shape (series, points) or (conditions, series, points)."""
    weighs: bool = True
    """Whether a small sample makes a point unusable (not where absence itself is the finding)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Least sample of a rule; NaN = the signal judges itself."""

    n: float
    requests: float


def column(values: Sequence[float | None]) -> Floats:
    """Return one value a condition, shaped to be compared with (series, points); None = NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)[:, None, None]


def codes_of(judged: Judged, samples: Sequence[Sample], matches: NDArray[np.bool_]) -> Codes:
    """Return the codes, shape (conditions, series, points). ``matches``: shape (conditions, series)."""
    grid = judged.grid
    shape = judged.breach.shape
    why = np.broadcast_to(judged.why, shape)
    if judged.weighs:
        why = np.where(_few(grid, samples, why), np.uint8(Why.FEW), _own(samples, why))
    codes = np.where(why == Why.OK, judged.breach.astype(np.uint8), why + np.uint8(UNKNOWN))
    return np.where(matches[:, :, None], codes, np.uint8(ABSENT))


def _own(samples: Sequence[Sample], why: Whys) -> Whys:
    """Return the signal's own judgement, overruled where the rule says how much is enough."""
    told = ~np.isnan(column([sample.n for sample in samples]))
    return np.where(told & (why == Why.FEW), np.uint8(Why.OK), why)


def _few(grid: Grid, samples: Sequence[Sample], why: Whys) -> NDArray[np.bool_]:
    usable = (why == Why.OK) | (why == Why.FEW)
    n, requests = (column([getattr(sample, name) for sample in samples]) for name in ("n", "requests"))
    # A comparison with NaN is False: neither a rule without a limit nor an unknown size makes a sample small.
    return np.asarray(usable & ((grid.n < n) | (grid.requests < requests)))


Evidence = Mapping[str, Any]
