"""Write the samples of one batch: raw rows, roll-ups and newest values, each sample counted once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Table

from specscope_server.models import Base
from specscope_server.store import dialects
from specscope_server.store.rollup import HOUR_MS, MINUTE_MS, TEN_MINUTES_MS, Samples, group_starts, roll_up

RESOLUTIONS = {"1m": MINUTE_MS, "10m": TEN_MINUTES_MS, "1h": HOUR_MS}
"""Suffix of the roll-up's table → length of its buckets."""

_MERGE_ROLLUP = (
    "n = old.n + new.n, sum = old.sum + new.sum, "
    "min = LEAST(old.min, new.min), max = GREATEST(old.max, new.max), "
    "last = CASE WHEN new.last_ms >= old.last_ms THEN new.last ELSE old.last END, "
    "last_ms = GREATEST(old.last_ms, new.last_ms), span_ms = old.span_ms + new.span_ms"
)
_REPLACE_LATEST = "time_ms = new.time_ms, value = new.value, span_ms = new.span_ms"


def table(name: str) -> Table:
    """Return the table of this name."""
    return Base.metadata.tables[name]


def write_samples(connection: Connection, samples: Samples) -> Samples:
    """Store those samples that are not there yet and return them; the others change nothing.

    ``samples`` are sorted and free of repeats. The caller holds the server's lock, so nobody else adds any.
    """
    if not len(samples):
        return samples
    first = group_starts(samples.series_id)
    newest_ms = _newest_stored(connection, samples.series_id[first])[_group_of_each(first, len(samples))]
    samples, newest_ms = _drop_stored(connection, samples, newest_ms)
    if not len(samples):
        return samples
    dialects.bulk_insert(connection, table("sample"), samples.columns())
    for suffix, resolution_ms in RESOLUTIONS.items():
        rows = roll_up(samples, resolution_ms).columns()
        dialects.merge(connection, table(f"sample_{suffix}"), rows, _MERGE_ROLLUP)
    _write_latest(connection, samples, newest_ms)
    return samples


def _newest_stored(connection: Connection, series_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return per series the time of its newest stored sample; -1 where there is none."""
    ids = series_ids.tolist()
    times = dialects.latest_times(connection, ids)
    return np.array([times.get(series_id, -1) for series_id in ids], dtype=np.int64)


def _group_of_each(first: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, size)))


def _drop_stored(
    connection: Connection, samples: Samples, newest_ms: NDArray[np.int64]
) -> tuple[Samples, NDArray[np.int64]]:
    """Drop samples that the table holds. Only one that is not newer than the series' newest can be there."""
    late = np.flatnonzero(samples.time_ms <= newest_ms)
    if not len(late):
        return samples, newest_ms
    keys = [samples.series_id[late].tolist(), samples.time_ms[late].tolist()]
    stored = dialects.existing_keys(connection, table("sample"), keys)
    keep = np.ones(len(samples), dtype=np.bool_)
    keep[late] = [key not in stored for key in zip(*keys, strict=True)]
    return samples.take(keep), newest_ms[keep]


def _write_latest(connection: Connection, samples: Samples, newest_ms: NDArray[np.int64]) -> None:
    last = np.append(group_starts(samples.series_id)[1:], len(samples)) - 1
    last = last[samples.time_ms[last] > newest_ms[last]]
    dialects.merge(connection, table("latest"), samples.take(last).columns(), _REPLACE_LATEST)
