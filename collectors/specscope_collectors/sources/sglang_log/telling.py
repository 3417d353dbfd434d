"""How the following of a log goes, in the words of its `SourceHealth`."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from specscope_collectors.health import MAX_DETAIL
from specscope_collectors.observations import HealthState, SourceHealth
from specscope_collectors.tailing import Reading, TailState

RECENT_MS = 600_000
"""For how long refused and lost lines are told of."""
IDLE_SECONDS = 60
WRONG_CLOCK_MS = 15 * 60_000
_STATES = {
    TailState.MISSING: HealthState.UNREACHABLE,
    TailState.DENIED: HealthState.UNAUTHORIZED,
    TailState.UNSUITABLE: HealthState.INVALID,
    TailState.FAILED: HealthState.UNREACHABLE,
}
_REMEDIES = {
    TailState.MISSING: "check path; following begins as soon as the file is there",
    TailState.DENIED: "let the collector's user read the file and list its directory",
    TailState.UNSUITABLE: "name a file; pipes are read by `specscope import log -`",
    TailState.FAILED: "look at the disk or mount",
}


@dataclass(slots=True)
class Telling:
    """Counts since the last report, and what lasts longer."""

    lines: int = 0
    status_lines: int = 0
    body_bytes: int = 0
    refused_now: int = 0
    seconds: float = 0.0
    recent: deque[tuple[int, Counter[str]]] = field(default_factory=deque)
    """(time, reason → lines or values) of what was refused or lost."""
    last_line_ms: int | None = None
    """When lines came last, by the collector's clock."""
    ahead_ms: int | None = None
    """How far the stamps of lines that were just written are ahead of the clock."""
    trouble: dict[str, Reading] = field(default_factory=dict)
    """Path → why it cannot be read."""
    mixed: str = ""
    """Why nothing is read although it could be."""

    def refuse(self, now_ms: int, reasons: Counter[str]) -> None:
        """Count what was refused or lost."""
        if reasons:
            self.refused_now += reasons.total()
            self.recent.append((now_ms, reasons))

    def report(self, source: str, pattern: str, files: int, now_ms: int, span_seconds: float) -> SourceHealth:
        """Return the health record and begin to count anew."""
        while self.recent and self.recent[0][0] < now_ms - RECENT_MS:
            self.recent.popleft()
        state, detail, remedy = self._words(files, now_ms, max(span_seconds, 1e-3))
        health = SourceHealth(
            source=source,
            time_ms=now_ms,
            state=state,
            url=pattern,
            duration_seconds=self.seconds,
            body_bytes=self.body_bytes,
            refused=self.refused_now,
            detail=detail[:MAX_DETAIL],
            remedy=remedy,
        )
        self.lines = self.status_lines = self.body_bytes = self.refused_now = 0
        self.seconds = 0.0
        return health

    def _words(self, files: int, now_ms: int, span_seconds: float) -> tuple[HealthState, str, str]:
        if self.mixed:
            return HealthState.INVALID, self.mixed, "choose with service ="
        if self.trouble and len(self.trouble) >= files:
            reading = next(iter(self.trouble.values()))
            return _STATES[reading.state], reading.detail, _REMEDIES[reading.state]
        if not files:
            return HealthState.UNREACHABLE, "no file has such a name", _REMEDIES[TailState.MISSING]
        state, remedy, parts = HealthState.OK, "", [self._pace(now_ms, span_seconds)]
        if self.ahead_ms is not None and abs(self.ahead_ms) > WRONG_CLOCK_MS:
            state, remedy = HealthState.PARTIAL, "set timezone = to the zone in which the engine writes"
            side = "ahead of" if self.ahead_ms > 0 else "behind"
            parts.append(f"fresh lines are stamped {_length(abs(self.ahead_ms))} {side} this clock")
        if self.recent:
            state = HealthState.PARTIAL
            parts.append(self._refusals())
        for reading in self.trouble.values():
            state, remedy = HealthState.PARTIAL, remedy or _REMEDIES[reading.state]
            parts.append(reading.detail)
        return state, "; ".join(parts), remedy

    def _pace(self, now_ms: int, span_seconds: float) -> str:
        if self.last_line_ms is None:
            return "no line has come yet"
        age_seconds = max(0, now_ms - self.last_line_ms) / 1000
        if age_seconds > IDLE_SECONDS:
            return f"idle: no line for {_length(age_seconds * 1000)}"
        lines, statuses = self.lines / span_seconds, self.status_lines / span_seconds
        pace = f"{lines:.1f} lines/s, of which {statuses:.1f} are Decode or Prefill lines"
        return f"{pace}; last line {age_seconds:.0f} s ago"

    def _refusals(self) -> str:
        total: Counter[str] = sum((reasons for _, reasons in self.recent), Counter())
        named = ", ".join(f"{count} × {reason}" for reason, count in total.most_common(3))
        return f"left out in the last 10 minutes: {named}"


def _length(milliseconds: float) -> str:
    minutes = round(milliseconds / 60_000)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
