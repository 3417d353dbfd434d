"""Something happened: a restart, another configuration, whatever sources report as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from specscope_server.alerts.rules.condition import ConditionBase, Pattern, Window
from specscope_server.alerts.rules.durations import write_duration
from specscope_server.alerts.rules.events import Events, EventSeries
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
    """Return the words of the newest event in the window, and how many more there were."""
    grid = reads[0]
    series, count = grid.series[place[0]], int(np.nan_to_num(grid.value[place]))
    if count == 0:
        return f"nothing of that kind in the last {write_duration(condition.window)}", {}
    assert isinstance(series, EventSeries)
    assert grid.times_ms is not None
    newest = series.newest(int(grid.times_ms[place[1]]))
    more = f" (and {count - 1} more in {write_duration(condition.window)})" if count > 1 else ""
    return f"{newest.words}{more}", dict(newest.evidence)
