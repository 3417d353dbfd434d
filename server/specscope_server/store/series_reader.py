"""Read time series in buckets: the one door through which the domains see samples.

Interface (implemented by the store; domains depend only on this):

* `find_series` resolves metric, server, launches and labels into `SeriesRef`s;
* `read_buckets` returns dense arrays per series; ``n == 0`` marks a gap (missing is not zero);
* `read_distributions` adds histograms up per bucket of a window;
* `read_levels` returns single samples, for what a mean over a bucket would blur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.timerange import Window
from specscope_server.models import Series
from specscope_server.store.bucketing import bucket_samples, raw_samples
from specscope_server.store.buckets import Buckets, DistributionBuckets, SeriesRef
from specscope_server.store.histogram_reader import bucket_distributions
from specscope_server.store.resolution import plan_window

__all__ = [
    "Buckets", "DistributionBuckets", "SeriesRef", "find_series", "read_buckets", "read_distributions",
    "read_levels",
]  # fmt: skip


def find_series(
    session: Session,
    *,
    metrics: Sequence[str],
    server_id: int | None = None,
    launch_ids: Sequence[int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[SeriesRef]:
    """Return the series that match all given conditions, ordered by id. ``labels`` matches as a subset."""
    statement = select(Series).where(Series.metric.in_(metrics)).order_by(Series.id)
    if server_id is not None:
        statement = statement.where(Series.server_id == server_id)
    if launch_ids is not None:
        statement = statement.where(Series.launch_id.in_(launch_ids))
    wanted = (labels or {}).items()
    refs = (
        SeriesRef(row.id, row.server_id, row.launch_id, row.metric, orjson.loads(row.labels))
        for row in session.scalars(statement)
    )
    return [ref for ref in refs if wanted <= ref.labels.items()]


def read_buckets(session: Session, series: Sequence[SeriesRef], window: Window) -> dict[int, Buckets]:
    """Return ``series id → Buckets`` for series with any sample in the window.

    Reads the coarsest roll-up that gives the same answer as all samples would (see `resolution.plan`). Where
    retention has removed those, a coarser roll-up stands in: it is put into the bucket that it starts in, and
    ``resolution_ms`` exceeds ``window.step_ms``: buckets after it are empty for want of detail, not of data.
    """
    connection = session.connection()
    segments = plan_window(connection, "sample", [ref.id for ref in series], window)
    return bucket_samples(connection, series, window, segments)


def read_distributions(
    session: Session, series: Sequence[SeriesRef], window: Window
) -> dict[int, list[DistributionBuckets]]:
    """Return ``series id → histograms`` (one per bucket layout) for series with any growth in the window.

    Picks resolutions like `read_buckets`.
    """
    connection = session.connection()
    segments = plan_window(connection, "distribution", [ref.id for ref in series], window)
    return bucket_distributions(connection, series, window, segments)


def read_levels(
    session: Session, series: Sequence[SeriesRef], from_ms: int, to_ms: int
) -> dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return ``series id → (times in ms, values)`` of the single samples in [from, to), in order of time.

    Only what retention has left of them; a series without any is not in the answer.
    """
    return raw_samples(session.connection(), series, from_ms, to_ms)
