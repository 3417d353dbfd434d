"""Observations as text: one JSON object per line, one JSON array, or lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from specscope_collectors.observations import Event, Increment, Launch, Level, Observation
from specscope_collectors.sources.sglang_log.report import iso, plain

Printer = Callable[[Iterable[Observation]], Iterator[bytes]]


def as_ndjson(observations: Iterable[Observation]) -> Iterator[bytes]:
    """Yield one JSON object per line."""
    encode = msgspec.json.Encoder().encode
    for observation in observations:
        yield encode(observation) + b"\n"


def as_json(observations: Iterable[Observation]) -> Iterator[bytes]:
    """Yield one JSON array, piece by piece."""
    encode = msgspec.json.Encoder().encode
    mark = b"[\n"
    for observation in observations:
        yield mark + encode(observation)
        mark = b",\n"
    yield b"[]\n" if mark == b"[\n" else b"\n]\n"


def as_text(observations: Iterable[Observation]) -> Iterator[bytes]:
    """Yield one line per observation for people."""
    for observation in observations:
        yield (_line(observation) + "\n").encode()


def _line(observation: Observation) -> str:
    if isinstance(observation, Level | Increment):
        labels = ", ".join(f"{name}={plain(value)}" for name, value in observation.labels.items())
        sign = "+" if isinstance(observation, Increment) else ""
        value = f"{sign}{observation.value:g}"
        return f"{iso(observation.time_ms)}  {observation.metric:<24} {value:<10} {labels}"
    if isinstance(observation, Event):
        return f"{iso(observation.time_ms)}  {observation.kind}: {plain(observation.message)}"
    if isinstance(observation, Launch):
        return f"{iso(observation.time_ms)}  launch {observation.key[:8]} {plain(observation.model or '')}"
    return plain(observation)
