"""What a domain offers to be alerted on: the `Signal`s that it lists as ``SIGNALS`` in its ``signals.py``.

A signal is read as points. Each point is what is known of one stretch of time, ``[time − window, time)``: a
value, its interval, how much it rests on, and where there is no value, why. One shape serves the newest point
(is it wrong now?) and a long row of them (when would it have been?).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.kit.web.state import AppState

Floats: TypeAlias = NDArray[np.float64]
Made = TypeVar("Made")

MAX_POINTS = 3_000
"""Most points of one reading."""


class Why(IntEnum):
    """Whether a point can be judged, and if not, why."""

    OK = 0
    NO_DATA = 1
    """Nothing was observed, or what was observed does not say."""
    IDLE = 2
    """Observed, and there was nothing to do: neither good nor bad."""
    STALE = 3
    """Was observed before, but nothing lately."""
    REFUSED = 4
    """What was observed contradicts itself."""
    FEW = 5
    """There is a value, but it rests on too little to say much."""
    GONE = 6
    """There is nothing to observe any more, and that is as it should be: the note says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """One watched server."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class SignalQuery:
    """What is asked for: points at ``from_ms + step_ms``, ``from_ms + 2 step_ms`` … up to ``to_ms``.

    Each is of the ``window_ms`` before it, so the first looks back beyond ``from_ms`` when the window is
    longer than the step. Only the newest point: ``from_ms = to_ms − step_ms``.
    """

    servers: tuple[Target, ...]
    from_ms: int
    to_ms: int
    step_ms: int
    window_ms: int
    now_ms: int
    state: AppState
    launch: str | None = None
    """Id of one launch; None = whichever ran in each window. Signals that belong to no launch ignore it."""
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False)
    """Of one evaluation: what several signals of a domain need is read once (see `shared`)."""
    held_ms: int | None = None
    """As of when the baseline of a signal that has one of its own stands still; None = it moves on."""

    @property
    def times_ms(self) -> NDArray[np.int64]:
        """Return the ends of the windows, ascending."""
        return np.arange(self.from_ms + self.step_ms, self.to_ms + 1, self.step_ms, dtype=np.int64)

    @property
    def begin_ms(self) -> int:
        """Return where the first window begins."""
        return self.from_ms + self.step_ms - self.window_ms

    def only(self, server: Target) -> SignalQuery:
        """Return the same question about one server; the memo stays shared."""
        return replace(self, servers=(server,))

    def shared(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made under this key in this evaluation before, or make it now.

        Times, window and launch are part of the key by themselves.
        """
        whole = (key, self.from_ms, self.to_ms, self.step_ms, self.window_ms, self.launch)
        if whole not in self.memo:
            self.memo[whole] = make()
        return self.memo[whole]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class SignalSeries:
    """The points of one label set; arrays of shape (points,), aligned with ``query.times_ms``."""

    labels: Mapping[str, str]
    """At least ``server``; ``rank``, ``position`` and the like as the signal's ``labels`` say. Untrusted."""
    value: Floats
    """NaN = not known; ``why`` tells the reason."""
    why: NDArray[np.uint8]
    """`Why` of each point."""
    n: Floats
    """How much the value rests on, in the signal's ``n_unit``; NaN = not known."""
    lower: Floats | None = None
    """95 % interval; None, or NaN at a point: no interval is known."""
    upper: Floats | None = None
    requests: Floats | None = None
    """Clusters behind the value, where requests are known."""
    note: str = ""
    """What a reader must know (which evidence, what is missing)."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """JSON-able: what to show beside the newest point."""

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return (lower, upper), NaN where not known."""
        unknown = np.full(len(self.value), np.nan)
        return (
            unknown if self.lower is None else self.lower,
            unknown if self.upper is None else self.upper,
        )


Read: TypeAlias = Callable[[Session, SignalQuery], list[SignalSeries]]
ReadOne: TypeAlias = Callable[[Session, SignalQuery, Target], list[SignalSeries]]


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that rules can watch."""

    name: str
    """``<domain>.<name>``, e.g. ``acceptance.accept_length``."""
    unit: str
    meaning: str
    """One sentence for people who write rules."""
    read: Read
    """Answers for all of ``query.servers``; a server without any data has no series."""
    labels: tuple[str, ...] = ()
    """Labels beside ``server``."""
    n_unit: str = ""
    has_interval: bool = False
    page: str = ""
    """Path of the page that shows it, e.g. ``/acceptance``; '' = the overview."""
    has_baseline: bool = False
    """Its values are changes against a time before, which ``query.held_ms`` makes stand still."""


def each_server(read: ReadOne) -> Read:
    """Return a reader of many servers that asks ``read`` for one after the other."""

    def read_all(session: Session, query: SignalQuery) -> list[SignalSeries]:
        return [
            series
            for server in query.servers
            for series in read(session, query.only(server), server)
        ]  # fmt: skip

    return read_all
