"""What conditions need to read, and what they get: the points of all series of a signal, side by side."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.reading import LabelKey, label_key
from specscope_server.alerts.rules.signals import signal
from specscope_server.kit.signal import Floats, SignalQuery, SignalSeries, Target, Why
from specscope_server.kit.web.state import AppState

READ_ANEW_MS = 900_000
"""What is over is read anew so often: samples may come late."""

Whys = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Frame:
    """Of whom, and at which instants: the newest alone, or many with the same step."""

    servers: tuple[Target, ...]
    times_ms: NDArray[np.int64]
    """Shape (points,), ascending."""
    step_ms: int
    now_ms: int
    state: AppState
    memo: dict[Hashable, Any] = field(default_factory=dict)
    turn: int = 0
    """Of what stands still: it is read anew in each, for what came late. 0 = it moves anyway."""

    def query(self, window_ms: int, shift_ms: int = 0, held_ms: int | None = None) -> SignalQuery:
        """Return the question for a window that ends at each instant, ``shift_ms`` earlier."""
        first, last = int(self.times_ms[0]) - shift_ms, int(self.times_ms[-1]) - shift_ms
        step_ms = self.step_ms if len(self.times_ms) > 1 else window_ms
        return SignalQuery(
            self.servers, first - step_ms, last, step_ms, window_ms, self.now_ms, self.state, None,
            self.memo, held_ms,
        )  # fmt: skip

    def only(self, server: Target) -> Frame:
        """Return the same of one server."""
        return Frame((server,), self.times_ms, self.step_ms, self.now_ms, self.state, self.memo)

    def at(self, time_ms: int) -> Frame:
        """Return the same at one instant alone, which stands still."""
        instant = np.array([time_ms], dtype=np.int64)
        turn = self.now_ms // READ_ANEW_MS
        return Frame(self.servers, instant, 1_000, self.now_ms, self.state, self.memo, turn)


@dataclass
class Grid:
    """All series of one read; arrays of shape (series, points)."""

    series: Sequence[SignalSeries]
    size: int
    unit: str = ""
    n_unit: str = ""
    page: str = ""
    times_ms: NDArray[np.int64] | None = None
    """The instants that the points are for (of a history: ends of its windows)."""
    held_ms: int | None = None
    """Of a baseline that stands still: the instant as of which it is."""

    @cached_property
    def keys(self) -> list[LabelKey]:
        """Return the label keys, in order."""
        return [label_key(one.labels) for one in self.series]

    @cached_property
    def value(self) -> Floats:
        """Return the values."""
        return self._stack([one.value for one in self.series])

    @cached_property
    def n(self) -> Floats:
        """Return the sample sizes."""
        return self._stack([one.n for one in self.series])

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return (lower, upper)."""
        pairs = [one.bounds for one in self.series]
        return self._stack([pair[0] for pair in pairs]), self._stack([pair[1] for pair in pairs])

    @cached_property
    def requests(self) -> Floats:
        """Return the requests behind the values, NaN where not known."""
        unknown = np.full(self.size, np.nan)
        return self._stack([unknown if one.requests is None else one.requests for one in self.series])

    @cached_property
    def why(self) -> Whys:
        """Return `Why` of each point."""
        return np.array([one.why for one in self.series], dtype=np.uint8).reshape(-1, self.size)

    def only(self, rows: Sequence[int]) -> Grid:
        """Return some of the series."""
        chosen = [self.series[row] for row in rows]
        return Grid(
            chosen, self.size, self.unit, self.n_unit, self.page, self.times_ms, self.held_ms
        )  # fmt: skip

    def _stack(self, rows: Sequence[Floats]) -> Floats:
        return np.array(rows, dtype=np.float64).reshape(-1, self.size)

    def aligned(self, keys: Sequence[LabelKey]) -> Grid:
        """Return the series of these keys in this order; one that is missing has no data."""
        known = dict(zip(self.keys, self.series, strict=True))
        found = [known.get(key) or self._missing(key) for key in keys]
        return Grid(found, self.size, self.unit, self.n_unit, held_ms=self.held_ms)

    def _missing(self, key: LabelKey) -> SignalSeries:
        unknown = np.full(self.size, np.nan)
        return SignalSeries(dict(key), unknown, np.full(self.size, Why.NO_DATA, dtype=np.uint8), unknown)


class Need(Protocol):
    """Something that is read once for all conditions that need it. Hashable by what it reads."""

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return its points for the frame."""
        ...


@dataclass(frozen=True, slots=True)
class Points:
    """A signal over the window that ends at each instant, ``shift_ms`` earlier."""

    signal: str
    window_ms: int
    shift_ms: int = 0
    held_ms: int | None = None
    """As of when the signal's own baseline stands still; None = it moves."""

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return one point an instant."""
        grid = grid_of(session, self.signal, frame.query(self.window_ms, self.shift_ms, self.held_ms))
        grid.times_ms = frame.times_ms
        return grid


@dataclass(frozen=True, slots=True)
class History:
    """A signal over ``count`` windows one after the other, the last of which ends a window before now."""

    signal: str
    window_ms: int
    count: int

    def read(self, session: Session, frame: Frame) -> Grid:
        """Return points a window apart; ``times_ms`` are their ends."""
        window_ms = self.window_ms
        first, last = int(frame.times_ms[0]), int(frame.times_ms[-1]) - window_ms
        points = self.count + (last + window_ms - first) // window_ms
        query = SignalQuery(
            frame.servers, last - points * window_ms, last, window_ms, window_ms, frame.now_ms, frame.state,
            None, frame.memo,
        )  # fmt: skip
        grid = grid_of(session, self.signal, query)
        grid.times_ms = query.times_ms
        return grid


def grid_of(session: Session, name: str, query: SignalQuery) -> Grid:
    """Read a signal."""
    found = signal(name)
    series = found.read(session, query)
    return Grid(series, len(query.times_ms), found.unit, found.n_unit, found.page)


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels in one line for people, e.g. ``gpu1:30000, position 2``; untrusted, so shortened."""
    parts = [value if name == "server" else f"{name} {value}" for name, value in labels.items()]
    return ", ".join(part[:60] for part in parts)
