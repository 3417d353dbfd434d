"""Baselines: the time before, moved in small steps; or a launch, of a long one its last day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.reading import LabelKey
from specscope_server.alerts.rules.reads import READ_ANEW_MS, Frame, Grid, grid_of
from specscope_server.kit.signal import SignalQuery, SignalSeries, Target, Why
from specscope_server.models import Launch, Server
from specscope_server.store.lookup import launches_between

LOOK_BACK_MS = 24 * 3_600_000
MIN_LENGTH_MS = 60_000
GRAINS = 96
MAX_KEPT = 8_192

_lock = Lock()
_kept: WeakKeyDictionary[Engine, dict[tuple[Any, ...], Grid]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Preceding:
    """A signal over a long window that ends ``shift_ms`` before each instant, rounded down to a grain.

    So it is read once in a while and not at every evaluation; the baseline ends up to a grain earlier.
    """

    signal: str
    window_ms: int
    shift_ms: int

    @property
    def grain_ms(self) -> int:
        """Return the steps in which it moves: a quarter of an hour for a day."""
        return max(self.window_ms // GRAINS, MIN_LENGTH_MS)

    def end_ms(self, time_ms: int) -> int:
        """Return where the baseline of an instant ends."""
        return (time_ms - self.shift_ms) // self.grain_ms * self.grain_ms

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return, at each instant, the baseline that holds then."""
        places = (frame.times_ms - self.shift_ms) // self.grain_ms
        first, last = int(places[0]) * self.grain_ms, int(places[-1]) * self.grain_ms
        grid = self._measured(session, frame, first, last)
        take = places - places[0]
        return Grid([taken(one, take) for one in grid.series], len(take), grid.unit, grid.n_unit)

    def _measured(self, session: Session, frame: Frame, first: int, last: int) -> Grid:
        query = SignalQuery(
            frame.servers, first - self.grain_ms, last, self.grain_ms, self.window_ms, frame.now_ms,
            frame.state, None, frame.memo,
        )  # fmt: skip
        if first != last:
            return grid_of(session, self.signal, query)
        key = (self, last, frame.servers, frame.turn)
        return keep(session, key, lambda: grid_of(session, self.signal, query))


def taken(one: SignalSeries, take: NDArray[np.int64]) -> SignalSeries:
    """Return a series of the points at these places."""
    lower, upper = one.bounds
    return SignalSeries(
        one.labels, one.value[take], one.why[take], one.n[take], lower[take], upper[take]
    )  # fmt: skip


def keep(session: Session, key: tuple[Any, ...], make: Callable[[], Grid]) -> Grid:
    """Return what was measured under this key before, or measure it now."""
    engine = session.get_bind()
    assert isinstance(engine, Engine)
    kept = _kept.setdefault(engine, {})
    if key not in kept:
        made = make()
        with _lock:
            while len(kept) >= MAX_KEPT:
                del kept[next(iter(kept))]
            kept[key] = made
        return made
    return kept[key]


@dataclass(frozen=True, slots=True)
class OfLaunch:
    """A signal over a launch: the one with this id, also of another server, or ('') the one before that which
    runs then.
    """

    signal: str
    launch: str

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return, at each instant, the baseline that holds then."""
        found: dict[LabelKey, tuple[SignalSeries, dict[int, SignalSeries]]] = {}
        for server in frame.servers:
            for place, grid in self._of_server(session, frame, server).items():
                for key, series in zip(grid.keys, grid.series, strict=True):
                    found.setdefault(key, (series, {}))[1][place] = series
        size = len(frame.times_ms)
        return Grid([_spread(first, points, size) for first, points in found.values()], size)

    def _of_server(self, session: Session, frame: Frame, server: Target) -> dict[int, Grid]:
        if self.launch:
            return self._of_run(session, frame, server, int(self.launch))
        launches = launches_between(session, server.id, 0, int(frame.times_ms[-1]) + 1)
        found = {}
        for place, time_ms in enumerate(frame.times_ms.tolist()):
            chosen = self._choose([one for one in launches if one.first_seen_ms <= time_ms])
            if chosen is not None:
                found[place] = _measured(session, frame, server, self.signal, chosen)
        return found

    def _of_run(self, session: Session, frame: Frame, server: Target, number: int) -> dict[int, Grid]:
        """Return the same run for every server: a yardstick for those of a fleet."""
        launch = session.get(Launch, number)
        if launch is None or launch.first_seen_ms > int(frame.times_ms[-1]):
            return {}
        owner = session.get_one(Server, launch.server_id)
        found = _measured(session, frame, Target(owner.id, owner.name), self.signal, launch)
        named = [replace(one, labels={**one.labels, "server": server.name}) for one in found.series]
        grid = Grid(named, found.size, found.unit, found.n_unit)
        times = enumerate(frame.times_ms.tolist())
        return {place: grid for place, time_ms in times if launch.first_seen_ms <= time_ms}

    @staticmethod
    def _choose(begun: Sequence[Launch]) -> Launch | None:
        if len(begun) < 2:
            return None
        alike = [one for one in begun[:-1] if (one.algorithm is None) == (begun[-1].algorithm is None)]
        long = [one for one in alike if one.last_seen_ms - one.first_seen_ms >= MIN_LENGTH_MS]
        return long[-1] if long else None


def _measured(session: Session, frame: Frame, server: Target, name: str, launch: Launch) -> Grid:
    """Return one point: the launch as it was last seen then; kept for a while."""
    to_ms = min(launch.last_seen_ms, int(frame.times_ms[-1])) + 1
    length_ms = min(to_ms - launch.first_seen_ms, LOOK_BACK_MS)
    query = SignalQuery(
        (server,), to_ms - length_ms, to_ms, length_ms, length_ms, to_ms, frame.state, str(launch.id), {}
    )  # fmt: skip
    key = (name, launch.id, to_ms, frame.now_ms // READ_ANEW_MS)
    return keep(session, key, lambda: grid_of(session, name, query))


def _spread(first: SignalSeries, points: dict[int, SignalSeries], size: int) -> SignalSeries:
    value, lower, upper, n = (np.full(size, np.nan) for _ in range(4))
    why = np.full(size, Why.NO_DATA, dtype=np.uint8)
    for place, series in points.items():
        low, high = series.bounds
        value[place], lower[place], upper[place] = series.value[-1], low[-1], high[-1]
        n[place], why[place] = series.n[-1], series.why[-1]
    return SignalSeries(first.labels, value, why, n, lower, upper)
