"""Launches without speculation: of what they cannot have there is no series, however lately it was there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from specscope_server.kit.signal import SignalQuery, SignalSeries, Why
from specscope_server.kit.versions import tells_settings
from specscope_server.models import Launch

NOTE = "the launch that runs now decodes without speculation"


def is_plain(launch: Launch) -> bool:
    """Tell whether a launch is known to decode without speculation."""
    return launch.algorithm is None and tells_settings(launch.engine, launch.version_source, launch.model)


def ended(
    query: SignalQuery, launches: Sequence[Launch], series: Sequence[SignalSeries], *, keeps: bool = False
) -> list[SignalSeries]:
    """Return series of drafts with those points gone whose newest launch has none.

    What the rest of a window holds is of a launch that is over. ``keeps``: unless a point can be judged.
    """
    gone = _without(query, launches)
    return [_marked(one, gone & (one.why != Why.OK) if keeps else gone) for one in series]


def _without(query: SignalQuery, launches: Sequence[Launch]) -> NDArray[np.bool_]:
    """Return for each point whether the newest launch that began before it is plain."""
    ordered = sorted(launches, key=lambda launch: launch.first_seen_ms)
    begun = np.array([launch.first_seen_ms for launch in ordered], dtype=np.int64)
    flags = np.array([False, *map(is_plain, ordered)])
    return np.asarray(flags[np.searchsorted(begun, query.times_ms)])


def _marked(one: SignalSeries, gone: NDArray[np.bool_]) -> SignalSeries:
    if not gone.any():
        return one
    why = np.where(gone, np.uint8(Why.GONE), one.why)
    return replace(one, why=why, note=NOTE if gone[-1] else one.note)
