"""Something that was there is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from specscope_server.alerts.numbers import moment
from specscope_server.alerts.rules.condition import SignalCondition, Window
from specscope_server.alerts.rules.durations import write_duration
from specscope_server.alerts.rules.judging import Judged
from specscope_server.alerts.rules.reads import Grid, Need, Points
from specscope_server.alerts.rules.still import Still
from specscope_server.kit.signal import Why


class Condition(SignalCondition):
    """A signal that had values has none. An idle engine is not absent."""

    meaning: ClassVar[str] = (
        "A signal that had values before has none in the window. Idle is not absent: an engine without "
        "work is fine."
    )

    kind: Literal["absence"] = "absence"
    lookback: Window = Field(86_400_000, description="How long before the window it must have been seen")

    def needs(self) -> tuple[Need, ...]:
        """Return what is read: now, and what was there."""
        return Points(self.signal, self.window), Points(self.signal, self.lookback, self.window)

    def held(self, at_ms: int) -> tuple[Need, ...]:
        """Return what is read while what was there stands still."""
        now, seen = self.needs()
        return now, Still(seen, at_ms)


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Look for each series that was seen in the lookback."""
    seen = reads[1]
    now = reads[0].aligned(seen.keys)
    now.n_unit = reads[0].n_unit
    was = (seen.why == Why.OK) | (seen.why == Why.FEW)
    gone = (now.why == Why.NO_DATA) | (now.why == Why.STALE)
    breach = np.broadcast_to(was & gone, (len(conditions), *was.shape))
    why = np.where(was, np.uint8(Why.OK), np.uint8(Why.NO_DATA))
    why = np.where(now.why == Why.GONE, np.uint8(Why.GONE), why)
    return Judged(now, breach, why, weighs=False)


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Return in words what is missing."""
    before = float(reads[1].value[place])
    window, lookback = write_duration(condition.window), write_duration(condition.lookback)
    held_ms = reads[1].held_ms
    when = "before" if held_ms is None else f"before {moment(held_ms - condition.window)}"
    words = f"{condition.signal} has no value in the last {window}; it had in the {lookback} {when}"
    if not is_breach:
        words = f"{condition.signal} is there in the last {window}, or the engine is idle"
    return words, {"signal": condition.signal, "before": before if before == before else None}
