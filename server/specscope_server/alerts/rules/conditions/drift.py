"""Hidden states are not what the draft was trained on: the verdict of drift, not a distance.

Plain distances follow the text that is served, so no rule compares them with a limit. The signal is a level
of each slot and phase: 0 = as trained, 1 = suspected, 2 = wrong (confirmed by two of three windows, or an
invariant). How often that is a false alarm is bounded by measurement; reason and evidence tell that and the
verdict's own budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from specscope_server.alerts.rules.condition import SignalCondition, Window
from specscope_server.alerts.rules.judging import Judged, column
from specscope_server.alerts.rules.reads import Grid, Need, Points

LEVELS = {"suspected": 1.0, "wrong": 2.0}


class Condition(SignalCondition):
    """The verdict on hidden states is at least this bad."""

    meaning: ClassVar[str] = (
        "The verdict on hidden states of a slot and phase is `suspected` or `wrong`; its false alarms are "
        "budgeted by the verdict itself."
    )

    kind: Literal["drift"] = "drift"
    signal: str = Field("drift.verdict", max_length=100, description="A signal whose values are such levels")
    at_least: Literal["suspected", "wrong"] = Field("wrong", description="From which level on it is a breach")
    window: Window = Field(3_600_000, description="The stretch before now whose windows of states count")

    def needs(self) -> tuple[Need, ...]:
        """Return what is read."""
        return (Points(self.signal, self.window),)


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Compare levels."""
    grid = reads[0]
    return Judged(grid, grid.value >= column([LEVELS[one.at_least] for one in conditions]), grid.why)


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Return the level in words; the series' own words say what is nearest."""
    level = int(np.nan_to_num(reads[0].value[place]))
    words = ["as trained", "suspected to differ from training", "not what the draft was trained on"]
    cost = reads[0].series[place[0]].evidence.get("false_alarms")
    budget = ""
    if level > 0 and isinstance(cost, Mapping):
        budget = f" (false alarms expected: {_rate(cost)}, budget {cost['budget_per_month']:g})"
    evidence = {"signal": condition.signal, "level": level}
    return f"hidden states are {words[min(max(level, 0), 2)]}{budget}", evidence


def _rate(cost: Mapping[str, Any]) -> str:
    expected = cost["expected_per_month"]
    return "rate not known yet" if expected is None else f"at most {expected:.2g} a month"
