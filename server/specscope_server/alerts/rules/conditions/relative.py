"""Higher or lower than something measured before, by a share of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from specscope_server.alerts.numbers import interval, moment, number
from specscope_server.alerts.rules.baselines import OfLaunch, Preceding
from specscope_server.alerts.rules.condition import SignalCondition, Window
from specscope_server.alerts.rules.judging import Judged, column
from specscope_server.alerts.rules.reads import Grid, Need, Points
from specscope_server.alerts.rules.still import HOUR_MS, WEEK_MS, SameHour, Still, StillRun
from specscope_server.kit.signal import Floats, Why

DAY_MS = 86_400_000
BASELINES = ("preceding", "same_hour_last_week", "previous_launch")
WORDS = {
    "preceding": "the time before", "same_hour_last_week": "the same hour last week",
    "previous_launch": "the launch before",
}  # fmt: skip


class Condition(SignalCondition):
    """The value changed against a baseline by more than a share of it."""

    meaning: ClassVar[str] = (
        "The value differs from a baseline by more than a share of it: from what came just before, the same "
        "hour last week, the launch before, or one chosen launch, of whichever server."
    )

    kind: Literal["relative"] = "relative"
    baseline: str = Field(
        "preceding",
        description="`preceding`, `same_hour_last_week`, `previous_launch`, or `launch:ID` of any server",
        examples=["preceding", "launch:12"],
    )
    baseline_window: Window = Field(DAY_MS, description="Of `preceding`: how much of it")
    drop: float | None = Field(None, gt=0, lt=1, description="Breach when lower by this share (0.1 = 10 %)")
    rise: float | None = Field(None, gt=0, le=1_000, description="Breach when higher by this share")
    on: Literal["value", "interval"] = Field(
        "interval",
        description="`interval`: only when the whole 95 % interval of the change lies beyond 0, too",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.drop is None) == (self.rise is None):
            raise ValueError("give exactly one of drop and rise")
        if self.baseline not in BASELINES and not re.fullmatch(r"launch:\d{1,18}", self.baseline, re.ASCII):
            raise ValueError(f"baseline {self.baseline[:40]!r} is none of {', '.join(BASELINES)}, launch:ID")
        return self

    def needs(self) -> tuple[Need, ...]:
        """Return what is read: now, and the baseline."""
        now = Points(self.signal, self.window)
        if self.baseline == "preceding":
            return now, self.preceding
        if self.baseline == "same_hour_last_week":
            return now, Points(self.signal, HOUR_MS, WEEK_MS - HOUR_MS // 2)
        return now, OfLaunch(self.signal, self.launch)

    def held(self, at_ms: int) -> tuple[Need, ...]:
        """Return what is read while the baseline stands still."""
        now, base = self.needs()
        if self.baseline == "same_hour_last_week":
            return now, SameHour(self.signal, at_ms - self.window)
        if self.baseline == "preceding":  # the same for every breach that begins within one of its steps
            return now, Still(base, self.preceding.end_ms(at_ms) + self.window)
        if self.launch:
            return now, StillRun(base, at_ms, self.window)
        return now, Still(base, at_ms)

    @property
    def preceding(self) -> Preceding:
        """Return the baseline of the time before."""
        return Preceding(self.signal, self.baseline_window, self.window)

    @property
    def launch(self) -> str:
        """Return the id of the launch that is the baseline; '' = none is named."""
        return self.baseline.partition(":")[2]


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Compare each series with its own baseline. Where there is none, there is no verdict."""
    grid, base = reads[0], reads[1].aligned(reads[0].keys)
    change, low, high = changes(grid, base)
    drops, rises = (column([getattr(one, name) for one in conditions]) for name in ("drop", "rise"))
    by_interval = np.array([condition.on == "interval" for condition in conditions])[:, None, None]
    sure_down = ~by_interval | ~np.isfinite(high) | (high < 0)
    sure_up = ~by_interval | ~np.isfinite(low) | (low > 0)
    breach = ((change < -drops) & sure_down) | ((change > rises) & sure_up)
    # That nothing was read at the very end of a baseline takes nothing from what was measured in it.
    has_base = np.isin(base.why, (Why.OK, Why.STALE, Why.GONE)) & np.isfinite(change)
    why = np.where((grid.why == Why.OK) & ~has_base, np.uint8(Why.NO_DATA), grid.why)
    return Judged(grid, breach, why)


def changes(grid: Grid, base: Grid) -> tuple[Floats, Floats, Floats]:
    """Return now/before − 1 with its interval, as the comparison of launches computes it one by one
    (`relative_change`, by which this is tested).
    """
    a, (a_low, a_high) = _logs(base.value), map(_logs, base.bounds)
    b, (b_low, b_high) = _logs(grid.value), map(_logs, grid.bounds)
    change = b - a
    down, up = np.hypot(b - b_low, a_high - a), np.hypot(b_high - b, a - a_low)
    is_bound = np.isfinite(down + up)  # an interval has two ends, or none
    low, high = (np.where(is_bound, each, np.nan) for each in (change - down, change + up))
    return np.expm1(change), np.expm1(low), np.expm1(high)


def _logs(values: Floats) -> Floats:
    """Return logarithms; NaN of what is unknown or not above 0."""
    usable = np.isfinite(values) & (values > 0)
    found: Floats = np.full(values.shape, np.nan)
    np.log(values, out=found, where=usable)
    return found


def _against(condition: Condition, base: Grid) -> str:
    """Return what it is compared with; of a baseline that stands still, what lay before it began."""
    if condition.baseline == "preceding":
        length = f"the {condition.baseline_window / 3_600_000:.3g} h"
        if base.held_ms is None:
            return f"{length} before"
        return f"{length} up to {moment(condition.preceding.end_ms(base.held_ms))}, before this began"
    words = WORDS.get(condition.baseline, condition.baseline.replace(":", " "))
    if base.held_ms is None or condition.launch:
        return words
    if condition.baseline == "same_hour_last_week":
        return "the same hour of the last week before this began"
    return f"{words} when this began, {moment(base.held_ms)}"


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Return the comparison in words, and as evidence."""
    grid, base = reads[0], reads[1].aligned(reads[0].keys)
    row = place[0]
    one = Grid([grid.series[row]], grid.size), Grid([base.series[row]], base.size)
    change, low, high = (float(array[0, place[1]]) for array in changes(*one))
    now, before = float(grid.value[place]), float(base.value[place])
    words = (
        f"{number(now, grid.unit)} against {number(before, grid.unit)} in {_against(condition, base)}: "
        f"{100 * change:+.1f} %{interval(low, high, '1')}"
    )
    evidence = {
        "signal": condition.signal, "baseline": condition.baseline, "before": before, "change": change,
        "change_lower": low, "change_upper": high,
    }  # fmt: skip
    return words, {name: None if value != value else value for name, value in evidence.items()}
