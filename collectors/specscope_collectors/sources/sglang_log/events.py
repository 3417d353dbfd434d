"""Events of a log: many lines of one kind within a minute become one event that counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from specscope_collectors.logs.stamps import BRACKET
from specscope_collectors.observations import Event
from specscope_collectors.redaction import redact_text
from specscope_collectors.sources.sglang_log.signals import Signal

MINUTE_MS = 60_000
MAX_MESSAGE = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(slots=True)
class Gathered:
    """One event in the making."""

    time_ms: int
    message: str
    kind: str
    count: int = 0
    requests: float = 0
    first: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Gatherer:
    """Events that are not handed over yet, by kind of line and minute."""

    pending: dict[tuple[bytes, int], Gathered] = field(default_factory=dict)

    def add(self, signal: Signal, time_ms: int, line: str, detail: dict[str, Any]) -> None:
        """Note one line."""
        key = (signal.needle, time_ms // MINUTE_MS)
        gathered = self.pending.get(key)
        if gathered is None:
            gathered = self.pending[key] = Gathered(time_ms, shown(line), signal.kind, first=detail)
        gathered.count += 1
        gathered.requests += detail.get("requests", 0)
        gathered.last = detail

    def take(self) -> list[Event]:
        """Return the events in order of time, and forget them."""
        found = [_event(gathered) for gathered in self.pending.values()]
        self.pending.clear()
        return sorted(found, key=lambda event: event.time_ms)


def shown(line: str) -> str:
    """Return the message of a line as it may be stored: without stamp, control characters and secrets."""
    stamp = BRACKET.match(line)
    text = _CONTROL.sub(" ", line[stamp.end() :] if stamp else line).strip()
    return redact_text(text[: 4 * MAX_MESSAGE])[:MAX_MESSAGE]


def _event(gathered: Gathered) -> Event:
    detail: dict[str, Any] = {"lines": gathered.count, "source": "log"}
    if gathered.requests:
        detail["retracted_requests"] = gathered.requests
    for name in ("old_steps", "accept_length"):
        if name in gathered.first:
            detail[name] = gathered.first[name]
    if "new_steps" in gathered.last:
        detail["new_steps"] = gathered.last["new_steps"]
    more = f" ({gathered.count} such lines within a minute)" if gathered.count > 1 else ""
    return Event(kind=gathered.kind, time_ms=gathered.time_ms, message=gathered.message + more, detail=detail)
