"""One status line → its time, rank and values. Keeps only what the next lines need."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from specscope_collectors.logs.stamps import Clockface
from specscope_collectors.sources.sglang_log.fields import read_fields
from specscope_collectors.sources.sglang_log.levels import Expected, read_values
from specscope_collectors.sources.sglang_log.ranks import Rank, rank_of
from specscope_collectors.sources.sglang_log.segments import Segment, is_quoted

QUOTED, NOTHING_WHOLE = "quoted inside another message", "nothing of the line is whole"
_NEWEST = (", cap len: ", ", block accept len: ", ", #host-receive-req: ", ", fwd+idle occupancy: ")
"""Fields that 0.5.15 does not write."""
MAX_RANKS = 10_000
"""Whose last times are remembered."""


@dataclass(slots=True)  # not frozen: making one takes a third of the time
class Status:
    """What one status line says."""

    is_decode: bool
    time_ms: int
    rank: Rank
    values: dict[str, float]
    is_cut: bool
    form: str


@dataclass(slots=True)
class StatusReader:
    """Reads segments in the order of the log."""

    clock: Clockface
    refused: Counter[str]
    last_ms: dict[Rank, int] = field(default_factory=dict)

    def read(self, segment: Segment, expected: Expected, *, may_be_cut: bool) -> Status | None:
        """Return what the segment says; None when it is refused, which is counted."""
        if is_quoted(segment.prefix):
            self.refused[QUOTED] += 1
            return None
        time_ms = self.clock.read(segment.prefix)
        if isinstance(time_ms, str):
            self.refused[time_ms] += 1
            return None
        fields = read_fields(segment.body, may_be_cut=may_be_cut and not segment.is_open)
        values = read_values(
            fields.values, is_decode=segment.is_decode, expected=expected, refused=self.refused
        )
        if not values:
            self.refused[NOTHING_WHOLE] += 1
            return None
        rank = rank_of(segment.prefix)
        return Status(
            segment.is_decode, self._ordered(rank, time_ms), rank, values, fields.is_cut, form_of(segment)
        )

    def _ordered(self, rank: Rank, time_ms: int) -> int:
        """Tell apart the lines of one rank within a second: stamps without fractions are cut off, not exact.

        The n-th line of a second gets n ms more, which is still within that second.
        """
        last = self.last_ms.get(rank)
        if last is not None and time_ms <= last and last // 1000 == time_ms // 1000:
            time_ms = min(last + 1, time_ms // 1000 * 1000 + 999)
        if len(self.last_ms) > MAX_RANKS:
            self.last_ms.clear()
        self.last_ms[rank] = time_ms
        return time_ms


def form_of(segment: Segment) -> str:
    """Which of the known versions write a decode line like this; empty for one that is not complete."""
    if not segment.is_decode or "#queue-req: " not in segment.body:
        return ""
    has_comma_at_end = segment.body.rstrip().endswith(",")
    if "." in segment.head:
        return "0.5.2" if has_comma_at_end else "0.4.6"
    if has_comma_at_end:
        return "0.5.8"
    return "0.5.23 or later" if any(mark in segment.body for mark in _NEWEST) else "0.5.15 or later"
