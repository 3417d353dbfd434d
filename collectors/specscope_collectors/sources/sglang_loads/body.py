"""The body of ``/v1/loads``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from specscope_collectors.json_body import WrongBodyError, decode_json


class NotLoadsError(WrongBodyError):
    """The body is no loads answer."""


class Loads(msgspec.Struct, frozen=True, kw_only=True):
    """Load of each data-parallel rank."""

    version: str | None
    loads: tuple[dict[str, Any], ...]
    age_seconds: float | None
    """Age of the oldest snapshot when the answer was made, by the engine's own clock; None before 0.5.23."""
    is_demo: bool


def parse_loads(body: bytes) -> Loads:
    """Return what ``/v1/loads`` said. Raises `NotLoadsError`."""
    answer = decode_json(body, NotLoadsError)
    loads = answer.get("loads") if isinstance(answer, dict) else None
    if not isinstance(loads, list) or not all(isinstance(load, dict) for load in loads):
        raise NotLoadsError("JSON without a list named loads")
    version = answer.get("version")
    return Loads(
        version=version[:100] if isinstance(version, str) else None,
        loads=tuple(loads),
        age_seconds=_age_seconds(answer.get("timestamp"), loads),
        is_demo=answer.get("specscope_demo") is True,
    )


def _age_seconds(answered: Any, loads: list[dict[str, Any]]) -> float | None:
    stamps = [load["timestamp"] for load in loads if isinstance(load.get("timestamp"), int | float)]
    if not stamps or not isinstance(answered, str):
        return None
    try:
        return float(datetime.fromisoformat(answered).timestamp() - min(stamps))
    except (ValueError, OverflowError):
        return None
