"""Lengths of time as people write them in rules (``5m``, ``1.5h``), kept as whole milliseconds."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.timeparse import parse_duration_ms

PARTS = (("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


def read_duration(given: Any) -> int:
    """Return milliseconds of a text; 0 may be written as ``0`` or ``0s``."""
    if given in (0, "0", "0s", "0m"):
        return 0
    if isinstance(given, bool) or not isinstance(given, str):
        raise ValueError(f"{given!r} has no unit; write a text like 30s, 5m or 1h")
    try:
        return parse_duration_ms(given, "it")
    except InvalidInput:
        raise ValueError(f"{given[:40]!r} is not a length of time; write 30s, 5m, 1h or 1d") from None


def write_duration(length_ms: int) -> str:
    """Return the shortest text that reads back as this length, e.g. ``90s``, ``15m``."""
    if length_ms == 0:
        return "0s"
    unit, size = next((unit, size) for unit, size in PARTS if length_ms % size == 0)
    return f"{length_ms // size}{unit}"


Duration: TypeAlias = Annotated[
    int,
    BeforeValidator(read_duration),
    PlainSerializer(write_duration, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["5m"], "description": "`30s`, `5m`, `1h`, `1d`"}),
]
"""Milliseconds; as text in files and over REST."""
