"""Lines that tell of something that happened, and the kind of event that each becomes."""

from __future__ import annotations

import re
from dataclasses import dataclass

READY = "ready"
SWITCH, RETRACTION, ERROR, FLUSH = "adaptive_switch", "retraction", "log_error", "cache_flush"


@dataclass(frozen=True, slots=True)
class Signal:
    """One kind of line."""

    needle: bytes
    """Found anywhere in the line; long, because long ones are searched fastest."""
    kind: str
    pattern: re.Pattern[str] | None = None
    """Named groups become the event's detail."""


def _signal(needle: str, kind: str, pattern: str = "") -> Signal:
    return Signal(needle.encode(), kind, re.compile(pattern) if pattern else None)


_RETRACTED = r"#retracted_reqs: (?P<requests>\d+)"
_STEPS = r"steps (?P<old_steps>\d+) -> (?P<new_steps>\d+)"

SIGNALS = (
    _signal("The server is fired up", READY),
    _signal(
        "Adaptive spec params updated", SWITCH, _STEPS + r"(?: \(ema_accept_len=(?P<accept_length>[\d.]+))?"
    ),
    _signal("Switch adaptive runtime state", SWITCH, _STEPS),
    _signal("speculative_adaptive disabled", SWITCH),
    _signal("KV cache pool is full. Retract", RETRACTION, _RETRACTED),
    _signal("Decode out of memory happened", RETRACTION, _RETRACTED),
    _signal("Cache flushed successfully", FLUSH),
    _signal("OutOfMemoryError", ERROR),
    _signal("Not enough memory. Please try", ERROR),
    _signal("atchdog timeout (", ERROR),
    _signal("ProcessGroupNCCL.cpp", ERROR, r"(?P<severity>\[E\d|ERROR|[Tt]imeout|[Ee]rror|exception)"),
    _signal("NCCL error", ERROR),
    _signal("Scheduler hit an exception", ERROR),
    _signal("crashed with exit code", ERROR),
    _signal("Received sigquit", ERROR),
    _signal("SIGQUIT received", ERROR),
    _signal("Health check failed. Server", ERROR),
)

SIGNAL_NEEDLES = tuple(signal.needle for signal in SIGNALS)


def find_signal(line: bytes) -> Signal | None:
    """Return the first signal that the line holds."""
    return next((signal for signal in SIGNALS if signal.needle in line), None)


def details(signal: Signal, text: str) -> dict[str, float | str] | None:
    """Return what the line says in numbers; None when it is not meant (an NCCL line that is no error)."""
    if signal.pattern is None:
        return {}
    match = signal.pattern.search(text)
    if match is None:
        return None if signal.kind == ERROR else {}
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    return {name: float(value) for name, value in found.items() if re.fullmatch(r"\d+(\.\d+)?", value)}
