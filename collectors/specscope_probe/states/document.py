"""The file in which one window of one rank travels: gzip'd JSON, format 1."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from specscope_probe.states.capture import Capture
from specscope_probe.states.window import Window

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Who reports."""

    rank: Mapping[str, str]
    engine_version: str
    model_class: str
    probe_version: str
    started_ms: int
    random_seed: int | None
    """The engine's; it draws one at each start, by which the launch is known."""


def places_of(capture: Capture, slots: int) -> list[dict[str, int]]:
    """Return of each slot what says where it is. In a calibration there are no slots, only boundaries."""
    boundaries = capture.boundaries
    if capture.is_calibration:
        return [{"boundary": boundary} for boundary in range(slots)]
    if boundaries is None:
        return [{"slot": slot} for slot in range(slots)]
    return [{"slot": slot, "boundary": boundary} for slot, boundary in enumerate(boundaries)]


def document(
    identity: Identity, capture: Capture, window: Window, sums: tuple[Any, Any, Any], limits: Any,
    created_ms: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the content of a file; ``sums`` are Σ over channels and over token ids, and rows of Σh²."""
    common = {"labels": dict(identity.rank), "hidden_size": capture.hidden_size}
    places = places_of(capture, window.slots)
    return {
        "format": FORMAT,
        "created_ms": created_ms,
        "rank": dict(identity.rank),
        "engine_version": identity.engine_version,
        "model_class": identity.model_class,
        "probe_version": identity.probe_version,
        "started_ms": identity.started_ms,
        "random_seed": identity.random_seed,
        "capture": capture.described(),
        "sink_limits": [round(float(limit), 4) if math.isfinite(limit) else None for limit in limits],
        "profiles": list(window.profiles(*sums, common, places)),
        "rows": window.shown,
    }


def packed(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file. Raises ValueError for what JSON cannot hold."""
    return gzip.compress(json.dumps(content, allow_nan=False).encode(), compresslevel=6, mtime=0)


def as_arrays(channels: Any, tokens: Any, distinct: Any) -> tuple[Any, Any, Any]:
    """Return the sums of the device as numpy arrays of their own."""
    rows = None if distinct is None else np.array(distinct.numpy())
    return np.array(channels.numpy()), np.array(tokens.numpy()), rows
