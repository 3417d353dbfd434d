"""Baselines that stand still: as they were when an alert began to breach.

A baseline that moves takes in a change that lasts, until there is nothing left to see. So while an alert is
pending or fires it is compared with what lay before its first breach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.baselines import keep
from specscope_server.alerts.rules.reading import LabelKey
from specscope_server.alerts.rules.reads import Frame, Grid, Need, Points
from specscope_server.kit.signal import SignalSeries, Why

HOUR_MS, WEEK_MS = 3_600_000, 604_800_000


@dataclass(frozen=True, slots=True)
class Still:
    """What is read at one instant, at every instant."""

    need: Need
    at_ms: int

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return a grid as of then: of one point spread over the frame, of a history as it is."""
        grid = keep(session, (self, frame.servers), lambda: self.need.read(session, frame.at(self.at_ms)))
        series, size = grid.series, grid.size
        if size == 1:
            size = len(frame.times_ms)
            series = [_repeated(one, size) for one in series]
        return Grid(series, size, grid.unit, grid.n_unit, grid.page, grid.times_ms, self.at_ms)


def _repeated(one: SignalSeries, size: int) -> SignalSeries:
    lower, upper = one.bounds
    return SignalSeries(
        one.labels, np.repeat(one.value, size), np.repeat(one.why, size), np.repeat(one.n, size),
        np.repeat(lower, size), np.repeat(upper, size),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SameHour:
    """The hour around the same time of the last week in which it was over by ``latest_ms``."""

    signal: str
    latest_ms: int

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return, at each instant, the hour that holds then."""
        ends_ms = frame.times_ms + HOUR_MS // 2
        weeks = np.maximum(-((self.latest_ms - ends_ms) // WEEK_MS), 1)
        grids = {
            count: Points(self.signal, HOUR_MS, count * WEEK_MS - HOUR_MS // 2).read(session, frame)
            for count in np.unique(weeks).tolist()
        }
        grid = next(iter(grids.values())) if len(grids) == 1 else _joined(grids, weeks)
        grid.held_ms = self.latest_ms
        return grid


def _joined(grids: dict[int, Grid], weeks: NDArray[np.int64]) -> Grid:
    """Return at each instant the point of the grid of its weeks."""
    first = next(iter(grids.values()))
    keys: list[LabelKey] = sorted({key for grid in grids.values() for key in grid.keys})
    series = [
        _of_weeks(dict(key), {n: grid.aligned([key]) for n, grid in grids.items()}, weeks) for key in keys
    ]
    return Grid(series, first.size, first.unit, first.n_unit, first.page, first.times_ms)


def _of_weeks(labels: dict[str, str], grids: dict[int, Grid], weeks: NDArray[np.int64]) -> SignalSeries:
    value, lower, upper, n = (np.full(len(weeks), np.nan) for _ in range(4))
    why = np.full(len(weeks), Why.NO_DATA, dtype=np.uint8)
    for count, grid in grids.items():
        here = weeks == count
        low, high = grid.bounds
        value[here], lower[here], upper[here] = grid.value[0][here], low[0][here], high[0][here]
        n[here], why[here] = grid.n[0][here], grid.why[0][here]
    return SignalSeries(labels, value, why, n, lower, upper)
