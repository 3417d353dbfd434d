"""Add histograms up per bucket of a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Connection, select

from specscope_server.kit.timerange import Window
from specscope_server.models import BucketLayout
from specscope_server.store import dialects
from specscope_server.store.buckets import DistributionBuckets, SeriesRef
from specscope_server.store.resolution import SUFFIX, Segment

_COLUMNS = "time_ms, layout_id, count, sum, buckets"


def bucket_distributions(
    connection: Connection, series: Sequence[SeriesRef], window: Window, segments: Sequence[Segment]
) -> dict[int, list[DistributionBuckets]]:
    """Return one entry per bucket layout for those series that have any histogram in the segments."""
    rows = {ref.id: _read(connection, ref, segments) for ref in series}
    bounds = _bounds(connection, {row[1] for found in rows.values() for row in found})
    return {
        series_id: [
            _add_up([row for row in found if row[1] == layout_id], bounds[layout_id], window)
            for layout_id in sorted({row[1] for row in found})
        ]
        for series_id, found in rows.items()
        if found
    }


def _read(connection: Connection, ref: SeriesRef, segments: Sequence[Segment]) -> list[Any]:
    return [
        row
        for segment in segments
        for row in dialects.fetch_series(
            connection,
            f"distribution{SUFFIX[segment.resolution_ms]}",
            _COLUMNS,
            ref.id,
            segment.from_ms,
            segment.to_ms,
        )
    ]


def _bounds(connection: Connection, layout_ids: set[int]) -> dict[int, tuple[float, ...]]:
    statement = select(BucketLayout.id, BucketLayout.bounds).where(BucketLayout.id.in_(layout_ids))
    return {layout_id: tuple(orjson.loads(bounds)) for layout_id, bounds in connection.execute(statement)}


def _add_up(rows: Sequence[Any], bounds: tuple[float, ...], window: Window) -> DistributionBuckets:
    index = np.array([(row[0] - window.from_ms) // window.step_ms for row in rows], dtype=np.int64)
    counts = np.zeros((window.buckets, len(bounds) + 1))
    count, total = np.zeros(window.buckets), np.zeros(window.buckets)
    np.add.at(counts, index, np.stack([np.frombuffer(row[4], dtype="<f8") for row in rows]))
    np.add.at(count, index, [row[2] for row in rows])
    np.add.at(total, index, [row[3] for row in rows])
    return DistributionBuckets(bounds=bounds, counts=counts, count=count, sum=total)
