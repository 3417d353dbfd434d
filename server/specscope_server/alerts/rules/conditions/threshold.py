"""Above or below a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specscope_server.alerts.numbers import interval, number
from specscope_server.alerts.rules.condition import SignalCondition
from specscope_server.alerts.rules.judging import Judged, column
from specscope_server.alerts.rules.reads import Grid, Need, Points, Whys
from specscope_server.alerts.rules.signals import signals
from specscope_server.kit.signal import Why


class Condition(SignalCondition):
    """The value, or the whole interval, lies above or below a limit."""

    meaning: ClassVar[str] = "The value, or its whole interval, lies above or below a limit."

    kind: Literal["threshold"] = "threshold"
    above: float | None = Field(None, allow_inf_nan=False, description="Breach when higher than this")
    below: float | None = Field(None, allow_inf_nan=False, description="Breach when lower than this")
    on: Literal["value", "interval"] = Field(
        "value",
        description="`interval`: only when the whole 95 % interval lies beyond the limit. Where no interval "
        "is known, the value decides, and the alert says so; see `without_interval`",
    )
    without_interval: Literal["value", "too_few"] = Field(
        "value",
        description="With `on: interval`, what holds where no interval is known: the value decides, or that "
        "it is too few to judge",
    )
    margin_without_interval: float = Field(
        0.0, ge=0, lt=1, allow_inf_nan=False,
        description="With `on: interval`, by which share of itself a value without an interval must lie "
        "beyond the limit",
    )  # fmt: skip

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.above is None) == (self.below is None):
            raise ValueError("give exactly one of above and below")
        return self

    def needs(self) -> tuple[Need, ...]:
        """Return what is read."""
        return (Points(self.signal, self.window),)

    def held(self, at_ms: int) -> tuple[Need, ...] | None:
        """Return what is read while the baseline of a signal that has one stands still."""
        known = signals().get(self.signal)
        if known is None or not known.has_baseline:
            return None
        return (Points(self.signal, self.window, held_ms=at_ms),)


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Compare all series with all limits. The bound that speaks last is compared: below → the upper one."""
    grid = reads[0]
    lower, upper = grid.bounds
    by_interval = np.array([condition.on == "interval" for condition in conditions])[:, None, None]
    margin = column([one.margin_without_interval if one.on == "interval" else 0.0 for one in conditions])
    room = margin * np.abs(grid.value)
    low = np.where(by_interval & np.isfinite(lower), lower, grid.value - room)
    high = np.where(by_interval & np.isfinite(upper), upper, grid.value + room)
    above, below = (column([getattr(one, name) for one in conditions]) for name in ("above", "below"))
    return Judged(grid, (low > above) | (high < below), _why(grid, conditions))


def _why(grid: Grid, conditions: Sequence[Condition]) -> Whys:
    """Return the grid's own, but that a value without an interval is too few for those that ask for one."""
    asks = [one.on == "interval" and one.without_interval == "too_few" for one in conditions]
    if not any(asks):
        return grid.why
    lower, upper = grid.bounds
    bare = np.array(asks)[:, None, None] & ~(np.isfinite(lower) & np.isfinite(upper))
    return np.where(bare & (grid.why == Why.OK), np.uint8(Why.FEW), grid.why)


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Return the comparison in words, and as evidence."""
    grid = reads[0]
    lower, upper = grid.bounds
    value, unit = float(grid.value[place]), grid.unit
    low, high = float(lower[place]), float(upper[place])
    limit = condition.above if condition.above is not None else condition.below
    side = "above" if condition.above is not None else "below"
    known = np.isfinite(low) and np.isfinite(high)
    how = f"{'' if is_breach else 'not '}{side} {number(limit or 0.0, unit)}"
    if condition.on == "interval" and not known:
        share = condition.margin_without_interval
        margin = f" with a margin of {number(share, '1')}" if share else ""
        how += f"; no interval is known here, the value decides{margin}"
    elif condition.on == "interval":
        how += " with its whole interval"
    evidence = {"signal": condition.signal, side: limit, "on": condition.on}
    return f"{number(value, unit)}{interval(low, high, unit)}, {how}", evidence
