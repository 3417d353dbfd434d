"""Query parameters that mean the same at every endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Query

from specscope_server.kit.timeparse import nice_step_ms, parse_duration_ms, parse_instant, window_of
from specscope_server.kit.timerange import Window
from specscope_server.kit.web.state import AppState, State

_INSTANT = "ISO 8601, epoch milliseconds, `now`, `now-6h` or `-30m`"
From = Annotated[str, Query(alias="from", description=f"Start of the range: {_INSTANT}", examples=["now-6h"])]
To = Annotated[str, Query(description=f"End of the range (exclusive): {_INSTANT}", examples=["now"])]
Step = Annotated[
    str | None,
    Query(description="Length of one bucket: `30s`, `5m`, `1h`; overrides `points`", examples=["30s"]),
]
Points = Annotated[
    int, Query(ge=1, le=10_000, description="Most buckets wanted; the step is chosen from customary lengths")
]
ServerName = Annotated[str, Query(description="Name of a watched server, as listed at /servers")]
OptionalServer = Annotated[
    str | None, Query(alias="server", description="Only this server (name, as listed at /servers)")
]
LaunchChoice = Annotated[
    str | None,
    Query(alias="launch", description="Id of a launch, `newest`, or `all` (default): launches in the range"),
]
Rank = Annotated[
    int | None,
    Query(
        alias="rank", ge=0, description="Only this data-parallel rank (`dp_rank`; 0 without data parallelism)"
    ),
]


class Format(StrEnum):
    """How the answer is written."""

    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"


FormatChoice = Annotated[
    Format, Query(alias="format", description="`json`, `csv` or `ndjson` (one object a line)")
]


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range in time as asked for."""

    from_ms: int
    to_ms: int
    now_ms: int
    step_ms: int | None
    points: int
    min_step_ms: int

    def window(self) -> Window:
        """Return the range cut into buckets, by the step asked for or else a customary one."""
        automatic = nice_step_ms(self.to_ms - self.from_ms, self.points, self.min_step_ms)
        return window_of(self.from_ms, self.to_ms, self.step_ms or automatic)

    @property
    def is_closed(self) -> bool:
        """True when the range ended over a minute ago: only late pushes can still change it."""
        return self.to_ms < self.now_ms - 60_000


def time_range(
    state: State, from_: From = "now-6h", to: To = "now", step: Step = None, points: Points = 300
) -> TimeRange:
    """Read from, to, step and points; refuse an empty range with a reason."""
    return make_time_range(state, from_, to, step, points)


def make_time_range(
    state: AppState, from_: str = "now-6h", to: str = "now", step: str | None = None, points: int = 300
) -> TimeRange:
    """Return the range for texts as they stand in a query string (also for pages and scripts)."""
    now_ms = state.clock()
    asked = TimeRange(
        from_ms=parse_instant(from_, now_ms, "from"),
        to_ms=parse_instant(to, now_ms, "to"),
        now_ms=now_ms,
        step_ms=None if step is None else parse_duration_ms(step, "step"),
        points=points,
        # Scrapes jitter: two intervals, so that a healthy source leaves no bucket empty.
        min_step_ms=max(1_000, 2 * state.scrape_interval_ms),
    )
    window_of(asked.from_ms, asked.to_ms, max(asked.to_ms, 1))  # refuses an empty range before any query runs
    return asked


def time_span(state: State, from_: From = "now-6h", to: To = "now") -> TimeRange:
    """Read from and to where nothing is cut into buckets."""
    return make_time_range(state, from_, to)


Range = Annotated[TimeRange, Depends(time_range)]
Span = Annotated[TimeRange, Depends(time_span)]
