"""Device clock readings without ever waiting for the device: pooled CUDA events.

An event is recorded on the stream in use and read when the last one of its cycle is done; by then all earlier
ones of that stream are done too. Nothing here synchronises.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol


class Event(Protocol):
    """What is used of ``torch.cuda.Event``."""

    def record(self) -> None: ...

    def query(self) -> bool: ...

    def elapsed_time(self, end: Any) -> float: ...


class DeviceClock(Protocol):
    """Where readings of the device come from."""

    def mark(self) -> Event:
        """Record an event on the stream in use."""
        ...

    def give_back(self, event: Event) -> None:
        """Return an event that nobody reads any more."""
        ...

    def is_capturing(self) -> bool:
        """Say whether a graph is being captured, in which nothing may be recorded."""
        ...


class CudaClock:
    """Events of ``torch.cuda``, used again and again."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._free: list[Event] = []

    def mark(self) -> Event:
        """Record an event on the current stream of the current device."""
        event: Event = self._free.pop() if self._free else self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def give_back(self, event: Event) -> None:
        """Keep the event for the next mark."""
        self._free.append(event)

    def is_capturing(self) -> bool:
        """Say whether the current stream is being captured into a graph."""
        return bool(self._cuda.is_current_stream_capturing())


def device_clock(device: str) -> DeviceClock | None:
    """Return the clock of the device on which a model runs; None: only the host's clock can be had."""
    if device.partition(":")[0] != "cuda":
        return None
    return CudaClock(importlib.import_module("torch"))
