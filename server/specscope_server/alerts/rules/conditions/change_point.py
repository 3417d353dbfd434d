"""A value unlike those before it: a simple, robust change point.

With m = median and s = 1.4826 · MAD of the windows before (the factor makes s the standard deviation where
values are normal), a value breaches when |x − m| > k · s and |x − m| > share · |m|. Outliers among the past
move neither m nor s much, up to half of it. The second limit keeps a nearly constant past, whose s is
about 0, from making every wiggle a finding. While an alert is pending or fires, the past is what lay before
it began; else a change would stop to breach when it fills half of the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from specscope_server.alerts.numbers import moment, number
from specscope_server.alerts.rules.condition import SignalCondition, Window
from specscope_server.alerts.rules.judging import Judged, column
from specscope_server.alerts.rules.reads import Grid, History, Need, Points
from specscope_server.alerts.rules.still import Still
from specscope_server.kit.signal import Floats, Why

TO_SIGMA = 1.4826
MIN_BEFORE = 10
"""Windows before that must be known: a median absolute deviation of fewer says little."""
MAX_BEFORE = 500


class Condition(SignalCondition):
    """The value is unlike those of the windows before."""

    meaning: ClassVar[str] = "The value is unlike those of the windows before it, by median and MAD."

    kind: Literal["change_point"] = "change_point"
    history: Window = Field(21_600_000, description="How much of the past is compared", examples=["6h"])
    deviations: float = Field(6.0, ge=2, le=100, description="k: how many robust deviations are too many")
    share: float = Field(0.05, gt=0, le=100, description="Least change, as a share of the median")
    direction: Literal["up", "down", "both"] = "both"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not MIN_BEFORE <= self.history // self.window <= MAX_BEFORE:
            raise ValueError(f"history must be {MIN_BEFORE} to {MAX_BEFORE} windows long")
        return self

    def needs(self) -> tuple[Need, ...]:
        """Return what is read: now, and the windows before."""
        return Points(self.signal, self.window), History(
            self.signal, self.window, self.history // self.window
        )

    def held(self, at_ms: int) -> tuple[Need, ...]:
        """Return what is read while the past stands still."""
        now, before = self.needs()
        return now, Still(before, at_ms)


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Compare each point with the windows before it."""
    grid = reads[0]
    middle, scale, known = past(reads, conditions[0])
    difference = grid.value - middle
    limit = np.maximum(
        column([one.deviations for one in conditions]) * scale,
        column([one.share for one in conditions]) * np.abs(middle),
    )
    signs = {"up": (True, False), "down": (False, True), "both": (True, True)}
    up, down = (
        np.array([signs[one.direction][side] for one in conditions])[:, None, None] for side in (0, 1)
    )
    breach = (up & (difference > limit)) | (down & (difference < -limit))
    why = np.where((grid.why == Why.OK) & (known < MIN_BEFORE), np.uint8(Why.NO_DATA), grid.why)
    return Judged(grid, breach, why)


def past(reads: Sequence[Grid], condition: Condition) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return (median, robust deviation, how many windows are known) of the past of each point."""
    grid, before = reads[0], reads[1].aligned(reads[0].keys)
    ends, count = reads[1].times_ms, condition.history // condition.window
    assert ends is not None
    usable = np.where(before.why == Why.OK, before.value, np.nan)
    padded = np.concatenate((np.full((len(usable), count), np.nan), usable), axis=1)
    # The windows of a point end at least a window before it; the last point lies a window after the last end.
    assert grid.times_ms is not None
    # Of a past that stands still, each later point has the one of the last.
    last_ms = ends[-1] + condition.window
    back = -((np.minimum(grid.times_ms, last_ms) - last_ms) // condition.window)
    stop = len(ends) - back
    places = np.clip(stop, 0, None)[:, None] + np.arange(count)[None, :]
    rows = padded[:, places]
    known = np.isfinite(rows).sum(axis=2)
    with np.errstate(all="ignore"):
        middle = _median(rows)
        scale = TO_SIGMA * _median(np.abs(rows - middle[:, :, None]))
    return middle, scale, known


def _median(rows: Floats) -> Floats:
    """Return the median of what is known, along the last axis; NaN where nothing is."""
    ordered = np.sort(rows, axis=2)  # NaN goes last
    known = np.isfinite(rows).sum(axis=2)
    low, high = np.maximum((known - 1) // 2, 0), np.minimum(known // 2, rows.shape[2] - 1)
    pair = [np.take_along_axis(ordered, place[:, :, None], axis=2)[:, :, 0] for place in (low, high)]
    return np.where(known > 0, (pair[0] + pair[1]) / 2, np.nan)


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Return the comparison in words, and as evidence."""
    grid = reads[0]
    middle, scale, known = (array[place] for array in past(reads, condition))
    value = float(grid.value[place])
    far = abs(value - middle) / scale if scale > 0 else np.inf
    held_ms = reads[1].held_ms
    when = "" if held_ms is None else f" {moment(held_ms)}, when this began,"
    words = (
        f"{number(value, grid.unit)}, while the median of the {int(known)} windows before{when} is "
        f"{number(float(middle), grid.unit)}"
    )
    if np.isfinite(far):
        words += f": {far:.1f} robust deviations away"
    return words, {
        "signal": condition.signal, "median": float(middle), "deviation": float(scale), "windows": int(known),
    }  # fmt: skip
