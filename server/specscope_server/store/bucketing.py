"""Turn rows of raw samples and roll-ups into dense arrays per series.

Aggregating in SQL (GROUP BY) is no faster than fetching the rows: the group is an expression, so SQLite sorts
for it; and rows give the last value, which GROUP BY does not (docs/decisions/0008).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from specscope_server.kit.timerange import Window
from specscope_server.models import Base
from specscope_server.store import dialects
from specscope_server.store.buckets import Buckets, SeriesRef
from specscope_server.store.hour_cache import RawRows, Version, cache_of
from specscope_server.store.resolution import SUFFIX, Segment
from specscope_server.store.rollup import HOUR_MS
from specscope_server.store.rows import (
    RAW,
    ROLLED_UP,
    Rows,
    as_matrix,
    buckets_of,
    fetch,
    raw_rows,
    rolled_up_rows,
    times_by_series,
)

Samples: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]
"""(times in ms, values) in order of time."""


def bucket_samples(
    connection: Connection, series: Sequence[SeriesRef], window: Window, segments: Sequence[Segment]
) -> dict[int, Buckets]:
    """Return the buckets of those series that have any sample in the segments."""
    ids = [ref.id for ref in series]
    parts = [_read(connection, ids, segment) for segment in segments] if ids else []
    return buckets_of(parts, ids, window)


def raw_samples(
    connection: Connection, series: Sequence[SeriesRef], from_ms: int, to_ms: int
) -> Mapping[int, Samples]:
    """Return (times, values) of the single samples of those series that have any in [from, to)."""
    ids = [ref.id for ref in series]
    if not ids:
        return {}
    return times_by_series(_read(connection, ids, Segment(0, from_ms, to_ms)), ids)


def _read(connection: Connection, ids: Sequence[int], segment: Segment) -> Rows:
    """Read rows by series, in order of time; raw samples become roll-ups of one."""
    span = segment.from_ms, segment.to_ms
    if segment.resolution_ms:
        table = f"sample{SUFFIX[segment.resolution_ms]}"
        found = fetch(connection, table, ROLLED_UP, ids, span, segment.resolution_ms)
        return rolled_up_rows(*found, segment.resolution_ms)
    if segment.to_ms - segment.from_ms >= HOUR_MS:
        return _through_cache(connection, ids, segment)
    return raw_rows(*fetch(connection, "sample", RAW, ids, span, 0))


def _through_cache(connection: Connection, ids: Sequence[int], segment: Segment) -> Rows:
    """Read whole hours of raw samples from memory where they are."""
    versions = _versions(connection, ids, segment)
    cache = cache_of(connection.engine)
    rest = [one for one in ids if one not in versions]
    parts = {
        one: cache.read(one, segment.from_ms, segment.to_ms, found, partial(_fetch, connection, one))
        for one, found in versions.items()
    }
    if rest:
        place, rows = fetch(connection, "sample", RAW, rest, (segment.from_ms, segment.to_ms), 0)
        parts |= {one: rows[place == number] for number, one in enumerate(rest)}
    ordered = [parts[one] for one in ids]
    return raw_rows(np.repeat(np.arange(len(ids)), [len(part) for part in ordered]), np.concatenate(ordered))


def _versions(connection: Connection, ids: Sequence[int], segment: Segment) -> dict[int, dict[int, Version]]:
    """Return series id → hour → its roll-up."""
    found: dict[int, dict[int, Version]] = {}
    from_ms = segment.from_ms - segment.from_ms % HOUR_MS
    hours = Base.metadata.tables["sample_1h"]
    condition = "AND time_ms >= ? AND time_ms < ?"
    for series_id, hour, *version in dialects.select_by_ids(
        connection, hours, ids, condition, from_ms, segment.to_ms
    ):
        found.setdefault(series_id, {})[hour] = tuple(version)
    return found


def _fetch(connection: Connection, series_id: int, from_ms: int, to_ms: int) -> RawRows:
    return as_matrix(dialects.fetch_series(connection, "sample", RAW, series_id, from_ms, to_ms), 3)
