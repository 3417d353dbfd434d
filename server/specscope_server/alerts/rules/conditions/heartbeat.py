"""Always: a sign of life for somebody who misses it when it stops.

It is evaluated, decided about and delivered like every alert, so it stops when one of these does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.condition import ConditionBase
from specscope_server.alerts.rules.judging import Judged
from specscope_server.alerts.rules.reads import Frame, Grid, Need
from specscope_server.kit.signal import SignalSeries

WORDS = "Specscope evaluates its rules and reaches this channel; if this stops, one of the two has ended"


class Condition(ConditionBase):
    """Holds always: once for the whole server, without labels."""

    meaning: ClassVar[str] = (
        "It holds always, so that a channel hears at each `repeat_interval` that alerting works: a dead "
        "man's switch."
    )

    kind: Literal["heartbeat"] = "heartbeat"
    match: ClassVar[Mapping[str, str]] = {}

    def needs(self) -> tuple[Need, ...]:
        """Return what is read: nothing."""
        return (Always(),)


@dataclass(frozen=True, slots=True)
class Always:
    """One series that needs no data."""

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return 1 at each instant."""
        size = len(frame.times_ms)
        series = SignalSeries({}, np.ones(size), np.zeros(size, dtype=np.uint8), np.full(size, np.nan))
        return Grid([series], size, "flag")


def judge(reads: Sequence[Grid], conditions: Sequence[Condition]) -> Judged:
    """Find it true."""
    grid = reads[0]
    return Judged(grid, np.ones((len(conditions), 1, grid.size), dtype=bool), grid.why, weighs=False)


def explain(
    condition: Condition, reads: Sequence[Grid], place: tuple[int, int], is_breach: bool
) -> tuple[str, dict[str, Any]]:
    """Say what it means."""
    return WORDS, {}
