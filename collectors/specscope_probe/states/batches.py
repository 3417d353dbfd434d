"""From one file of profiles to what is sent: the same records that a ``[[probe]]`` job makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from hashlib import sha256
from typing import Any

PART_BYTES = 512 << 10
"""Arrays of one request, as they stand in the file: with the rest it stays below 1 MiB, packed."""
ROWS_AN_EVENT = 256
SMALLEST_DRAWN = 100_000
"""Smaller seeds are chosen by people, who choose the same one again."""
PATIENCE_MS = 600_000
"""So long the server may take to notice a new start of the engine."""
ARRAYS = ("token_directions", "direction_sum", "direction_sum_of_squares", "sum_of_squares")

Record = dict[str, Any]


class Belonging(Enum):
    """What to do with a file."""

    TAKE = auto()
    WAIT = auto()
    REFUSE = auto()


def belonging(file: Mapping[str, Any], seed: object, launch_ms: int, now_ms: int) -> Belonging:
    """Compare the seed of a file with that of the launch that is watched, seen first at ``launch_ms``.

    Engines draw one at each start; where they are not known the file is taken.
    """
    seeds = (file.get("random_seed"), seed)
    if not all(type(each) is int and each >= SMALLEST_DRAWN for each in seeds) or seeds[0] == seeds[1]:
        return Belonging.TAKE
    created_ms = file["created_ms"]
    if created_ms >= launch_ms and now_ms - created_ms < PATIENCE_MS:
        return Belonging.WAIT
    return Belonging.REFUSE


def parts_of(file: Mapping[str, Any], known_capture: str | None) -> list[list[Record]]:
    """Return the records of a file, in parts. What is captured is told when it differs from what is known."""
    parts: list[list[Record]] = [[]]
    size = 0
    for profile in file["profiles"]:
        own = sum(len(profile.get(name, "")) for name in ARRAYS)
        if parts[-1] and size + own > PART_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(profile)
        size += own
    if known_capture != capture_key(file):
        parts[-1].append(_capture_event(file))
    parts[-1] += _row_events(file)
    return parts


def capture_key(file: Mapping[str, Any]) -> str:
    """Return what differs when another thing was captured, or by another engine."""
    names = ("capture", "engine_version", "model_class", "random_seed")
    return sha256(json.dumps([file.get(name) for name in names]).encode()).hexdigest()[:20]


def _capture_event(file: Mapping[str, Any]) -> Record:
    capture = file["capture"]
    known = capture["boundaries"]
    words = "unknown boundaries" if known is None else "boundaries " + ", ".join(map(str, known))
    if capture["is_calibration"]:
        words = f"calibration of {len(known or ())} boundaries"
    names = ("capture", "rank", "model_class", "engine_version", "probe_version")
    detail = {name: file[name] for name in names}
    return _event(file, "state_capture", f"states of {words}, {capture['width']} wide", detail)


def _row_events(file: Mapping[str, Any]) -> Iterator[Record]:
    for first in range(0, len(file["rows"]), ROWS_AN_EVENT):
        rows = file["rows"][first : first + ROWS_AN_EVENT]
        detail = {"rank": file["rank"], "sink_limits": file["sink_limits"], "rows": rows}
        yield _event(file, "state_rows", f"{len(rows)} sampled rows", detail)


def _event(file: Mapping[str, Any], kind: str, message: str, detail: Record) -> Record:
    time_ms = file["created_ms"]
    return {"type": "event", "kind": kind, "time_ms": time_ms, "message": message, "detail": detail}
