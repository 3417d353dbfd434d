"""From one file to records, in parts that are not too large for one batch."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from specscope_collectors.observations import Event, Observation, StateProfile
from specscope_collectors.sources.probe.reading import RawRow, StateFile

PART_BYTES = 4 << 20
ROWS_AN_EVENT = 256
CAPTURE, ROWS = "state_capture", "state_rows"


def profile_parts(file: StateFile) -> list[tuple[StateProfile, ...]]:
    """Return the profiles, cut so that the arrays of a part are at most about `PART_BYTES`."""
    parts: list[list[StateProfile]] = [[]]
    size = 0
    for profile in file.profiles:
        own = len(profile.token_directions) + 3 * len(profile.direction_sum)
        if parts[-1] and size + own > PART_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(profile)
        size += own
    return [tuple(part) for part in parts]


def capture_key(file: StateFile) -> str:
    """Return what differs when another thing was captured, or by another engine."""
    whole = (file.capture, file.engine_version, file.model_class, file.random_seed)
    return sha256(msgspec.json.encode(whole)).hexdigest()[:20]


def rank_key(file: StateFile) -> str:
    """Return a name of the rank that a file is of."""
    return ",".join(f"{name}={value}" for name, value in sorted(file.rank.items()))[:300]


def capture_event(file: StateFile) -> Event:
    """Say what is captured."""
    capture = file.capture
    known = capture.boundaries
    words = "boundaries " + ", ".join(map(str, known)) if known is not None else "unknown boundaries"
    if capture.is_calibration:
        words = f"calibration of {len(known or ())} boundaries"
    return Event(
        kind=CAPTURE,
        time_ms=file.created_ms,
        message=f"states of {words}, {capture.width} wide",
        detail={
            "capture": msgspec.json.decode(msgspec.json.encode(capture)),
            "rank": file.rank,
            "model_class": file.model_class,
            "engine_version": file.engine_version,
            "probe_version": file.probe_version,
        },
    )


def row_events(file: StateFile) -> Iterator[Event]:
    """Tell a few raw rows."""
    for first in range(0, len(file.rows), ROWS_AN_EVENT):
        rows: tuple[RawRow, ...] = file.rows[first : first + ROWS_AN_EVENT]
        yield Event(
            kind=ROWS,
            time_ms=file.created_ms,
            message=f"{len(rows)} sampled rows",
            detail={
                "rank": file.rank,
                "sink_limits": file.sink_limits,
                "rows": [msgspec.to_builtins(row) for row in rows],
            },
        )


def last_part(file: StateFile, known_capture: str | None) -> tuple[Observation, ...]:
    """Return the events that go with the end of a file."""
    capture = () if known_capture == capture_key(file) else (capture_event(file),)
    return (*capture, *row_events(file))
