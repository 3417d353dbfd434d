"""Which resolution answers which part of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from specscope_server.kit.timerange import Window
from specscope_server.models import Base
from specscope_server.store import dialects
from specscope_server.store.rollup import HOUR_MS, MINUTE_MS, TEN_MINUTES_MS

RESOLUTIONS_MS = (HOUR_MS, TEN_MINUTES_MS, MINUTE_MS, 0)
"""Coarsest first; 0 = raw."""
SUFFIX = {HOUR_MS: "_1h", TEN_MINUTES_MS: "_10m", MINUTE_MS: "_1m", 0: ""}

Oldest = Callable[[int], int | None]
"""Resolution → time of the oldest row that is still there; None = no row."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The part [from_ms, to_ms) of a window, to be read at one resolution."""

    resolution_ms: int
    from_ms: int
    to_ms: int


def plan_window(
    connection: Connection, kind: str, series_ids: Sequence[int], window: Window
) -> list[Segment]:
    """Plan reading ``kind`` (``sample`` or ``distribution``) of these series."""

    def oldest(resolution_ms: int) -> int | None:
        table = Base.metadata.tables[f"{kind}{SUFFIX[resolution_ms]}"]
        return dialects.oldest_time(connection, table, series_ids)

    return plan(window, oldest)


def plan(window: Window, oldest: Oldest) -> list[Segment]:
    """Cut the window into segments, oldest first.

    The body is read at the coarsest resolution that divides the step: its rows lie wholly inside the window's
    buckets. A tail shorter than that resolution (a window may end anywhere) is read at finer ones, so that
    nothing from beyond the end comes in. A head whose rows retention has removed is read at coarser ones.
    Retention removes whole hours, so a segment never starts inside a row.
    """
    best = next(r for r in RESOLUTIONS_MS if r == 0 or window.step_ms % r == 0)
    head, body_from_ms = _head(window, best, oldest)
    return [*head, *_tail(best, body_from_ms, window.to_ms)]


def _tail(resolution_ms: int, from_ms: int, to_ms: int) -> list[Segment]:
    """Read [from, to) at this resolution as far as it fits, the rest at finer ones."""
    segments = []
    for finer_ms in RESOLUTIONS_MS[RESOLUTIONS_MS.index(resolution_ms) :]:
        end_ms = to_ms if finer_ms == 0 else to_ms - to_ms % finer_ms
        if end_ms > from_ms:
            segments.append(Segment(finer_ms, from_ms, end_ms))
            from_ms = end_ms
    return segments


def _head(window: Window, best_ms: int, oldest: Oldest) -> tuple[list[Segment], int]:
    """Return coarser segments for what is gone at the best resolution, and where that begins."""
    segments: list[Segment] = []
    until_ms = _begin(oldest(best_ms), window)
    body_from_ms = until_ms
    for coarser_ms in reversed(RESOLUTIONS_MS[: RESOLUTIONS_MS.index(best_ms)]):
        if until_ms <= window.from_ms:
            break
        begin_ms = _begin(oldest(coarser_ms), window)
        if begin_ms < until_ms:
            segments.append(Segment(coarser_ms, begin_ms, until_ms))
            until_ms = begin_ms
    return segments[::-1], body_from_ms


def _begin(oldest_ms: int | None, window: Window) -> int:
    """Return where, within the window, rows can be expected: the hour of the oldest one."""
    if oldest_ms is None:
        return window.to_ms
    return min(max(oldest_ms - oldest_ms % HOUR_MS, window.from_ms), window.to_ms)
