"""Something happened: a restart, another configuration, whatever sources report as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from specscope_server.alerts.rules.condition import ConditionBase, Pattern, Window
from specscope_server.alerts.rules.events import Events
from specscope_server.alerts.rules.judging import Judged, column
from specscope_server.alerts.rules.reads import Grid, Need


class Condition(ConditionBase):
    """Events of some kinds were seen."""

    meaning: ClassVar[str] = "Events of some kinds happened in the window."

    kind: Literal["event"] = "event"
    events: list[str] = Field(
        min_length=1, max_length=20,
        description="Kinds, as listed at /api/v1/events; `*` and `?` as in file names",
        examples=[["config_change", "restart"]],
    )  # fmt: skip
    changed_only: bool = Field(False, description="Only events that name changed settings")
    at_least: int = Field(1, ge=1, le=10_000, description="How many in the window")
    window: Window = Field(600_000, description="How long ago it may have happened")
    match: Mapping[str, Pattern | list[Pattern]] = Field(default_factory=dict, max_length=10)

    def needs(self) -> tuple[Need, ...]:
        """Return what is read."""
        return (Events(tuple(sorted(self.events)), self.changed_only, self.window),)


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Count."""
    grid = reads[0]
    return Judged(grid, grid.value >= column([float(one.at_least) for one in conditions]), grid.why)


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Return the newest event's own words."""
    series = reads[0].series[place[0]]
    count = int(np.nan_to_num(series.value[place[1]]))
    is_newest = place[1] == len(series.value) - 1
    words = (series.note if is_newest else "") or f"{count} event{'s' * (count != 1)}"
    if not is_newest:
        return words, {}
    more = f" (and {count - 1} more)" if count > 1 else ""
    return f"{words}{more}", dict(series.evidence)
