"""Baselines that stand still: as they were when an alert began to breach.

A baseline that moves takes in a change that lasts, until there is nothing left to see. So while an alert is
pending or fires it is compared with what lay before its first breach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.baselines import Preceding, keep, taken
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
        then = frame.at(self.at_ms)
        grid = keep(session, (self, then.servers, then.turn), lambda: self.need.read(session, then))
        series, size = grid.series, grid.size
        if size == 1:
            size = len(frame.times_ms)
            series = [_repeated(one, size) for one in series]
        return Grid(series, size, grid.unit, grid.n_unit, grid.page, grid.times_ms, self.at_ms)

    def among(self, usual: Grid, times_ms: NDArray[np.int64]) -> Grid | None:
        """Return it from what was read of a row of instants, if this one's is among them; else None.

        So a replay of a rule that begins to breach again and again reads no baseline twice.
        """
        need = self.need
        if not isinstance(need, Preceding) or usual.size != len(times_ms):
            return None
        ends = (times_ms - need.shift_ms) // need.grain_ms * need.grain_ms
        [same] = np.nonzero(ends == need.end_ms(self.at_ms))
        if not len(same):
            return None
        series = [_repeated(one, usual.size, int(same[0])) for one in usual.series]
        return Grid(series, usual.size, usual.unit, usual.n_unit, usual.page, usual.times_ms, self.at_ms)


def _repeated(one: SignalSeries, size: int, place: int = 0) -> SignalSeries:
    return taken(one, np.full(size, place))


@dataclass(frozen=True, slots=True)
class StillRun:
    """A chosen launch as it was a window before ``at_ms``; where nothing of it was there yet, at ``at_ms``.

    It may still run, and then what is wrong now would be part of it.
    """

    run: Need
    at_ms: int
    window_ms: int

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return, at each instant, the launch as it was."""
        early = Still(self.run, self.at_ms - self.window_ms).read(session, frame)
        known = {
            key: one
            for key, one in zip(early.keys, early.series, strict=True)
            if np.isfinite(one.value).any()
        }
        late = Still(self.run, self.at_ms).read(session, frame)
        late.series = [known.get(key, one) for key, one in zip(late.keys, late.series, strict=True)]
        return late


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
