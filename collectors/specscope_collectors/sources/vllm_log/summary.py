"""What a vLLM log held, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

_REMEDIES = {
    "no_stamp": "no time in the line",
    "no_year": "a date without a year: give --year",
    "no_date": "a time without a date: give --date",
    "bad_stamp": "a time that does not exist",
}


@dataclass(slots=True)
class Summary:
    """One log, or several parts of it."""

    bytes_read: int = 0
    lines: int = 0
    load_lines: int = 0
    counted_lines: int = 0
    exact_lines: int = 0
    """Of these, those whose number of cycles is certain."""
    launches: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    first_ms: int | None = None
    last_ms: int | None = None

    def saw(self, time_ms: int) -> None:
        """Widen the time span."""
        self.first_ms = time_ms if self.first_ms is None else min(self.first_ms, time_ms)
        self.last_ms = time_ms if self.last_ms is None else max(self.last_ms, time_ms)

    def count(self, is_exact: bool) -> None:
        """Note one line with counts of drafts."""
        self.counted_lines += 1
        self.exact_lines += is_exact

    def report(self) -> Iterator[str]:
        """Yield the lines of the report."""
        yield f"read      {self.lines} lines, {self.bytes_read} bytes, of vLLM"
        yield f"matched   {self.counted_lines} lines with counts of drafts, {self.load_lines} about load"
        if self.counted_lines:
            certain = f"{self.exact_lines} of {self.counted_lines}"
            yield f"cycles    certain in {certain} lines; the others say nothing about τ"
        if self.first_ms is not None and self.last_ms is not None:
            yield f"time      {_iso(self.first_ms)} to {_iso(self.last_ms)}"
        yield f"launches  {self.launches}"
        for reason, count in self.refused.most_common(20):
            yield f"refused   {count} × {_REMEDIES.get(reason, reason)}"


def _iso(time_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
