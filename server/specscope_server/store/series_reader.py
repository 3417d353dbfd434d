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
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.kit.timerange import Window
from specscope_server.store.bucketing import bucket_samples, raw_samples
from specscope_server.store.buckets import Buckets, DistributionBuckets, SeriesRef
from specscope_server.store.histogram_reader import bucket_distributions
from specscope_server.store.one_pass import pass_of
from specscope_server.store.resolution import plan_window
from specscope_server.store.rollup import MINUTE_MS
from specscope_server.store.rows import Rows, buckets_of, times_by_series
from specscope_server.store.series_finder import find_series

__all__ = [
    "Buckets", "DistributionBuckets", "SeriesRef", "find_series", "read_buckets", "read_distributions",
    "read_levels",
]  # fmt: skip


def read_buckets(session: Session, series: Sequence[SeriesRef], window: Window) -> dict[int, Buckets]:
    """Return ``series id → Buckets`` for series with any sample in the window.

    Reads the coarsest roll-up that gives the same answer as all samples would (see `resolution.plan`). Where
    retention has removed those, a coarser roll-up stands in: it is put into the bucket that it starts in, and
    ``resolution_ms`` exceeds ``window.step_ms``: buckets after it are empty for want of detail, not of data.
    """
    connection, ids = session.connection(), [ref.id for ref in series]
    if (rows := _newest(session, ids, window)) is not None:
        return buckets_of([rows], ids, window)
    segments = plan_window(connection, "sample", ids, window)
    return bucket_samples(connection, series, window, segments)


def _newest(session: Session, ids: Sequence[int], window: Window) -> Rows | None:
    """Return the samples of a window from tapes, where a pass keeps them and no roll-up serves as well."""
    found = pass_of(session)
    if found is None or window.step_ms % MINUTE_MS == 0:
        return None
    return found.read(session.connection(), ids, window.from_ms, window.to_ms)


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
) -> Mapping[int, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return ``series id → (times in ms, values)`` of the single samples in [from, to), in order of time.

    Only what retention has left of them; a series without any is not in the answer.
    """
    found, ids = pass_of(session), [ref.id for ref in series]
    rows = found.read(session.connection(), ids, from_ms, to_ms) if found else None
    if rows is not None:
        return times_by_series(rows, ids)
    return raw_samples(session.connection(), series, from_ms, to_ms)
