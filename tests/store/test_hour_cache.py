"""The hours in memory never answer differently from the database."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session
from tests.store.conftest import HOUR_MS, NOW, T0, batch, increment

from specscope_server.kit.timerange import Window
from specscope_server.store.hour_cache import HourCache, cache_of
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.series_reader import find_series, read_buckets

STEP_MS = 36_000
WINDOW = Window(T0, T0 + 3 * HOUR_MS, STEP_MS)


@pytest.fixture
def filled(writer: IngestWriter) -> IngestWriter:
    growth = (increment(time_ms=T0 + i * 10_000, value=i) for i in range(1_080))
    writer.apply(batch(*growth, sequence=2))
    return writer


def read(engine: Engine, window: Window = WINDOW) -> tuple[float, int]:
    """Return (sum of the growth, rows read from the raw table)."""
    fetched = 0

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal fetched
        fetched += "FROM sample \n" in statement or "FROM sample WHERE" in statement

    event.listen(engine, "before_cursor_execute", count)
    with Session(engine) as session:
        [buckets] = read_buckets(
            session, find_series(session, metrics=["spec.verify_calls"]), window
        ).values()
    event.remove(engine, "before_cursor_execute", count)
    return float(buckets.sum.sum()), fetched


def test_a_second_read_takes_the_hours_from_memory(store_engine: Engine, filled: IngestWriter) -> None:
    assert read(store_engine) == (sum(range(1_080)), 1)
    assert read(store_engine) == (sum(range(1_080)), 0)


def test_a_new_sample_of_another_writer_is_seen_at_once(store_engine: Engine, filled: IngestWriter) -> None:
    read(store_engine)
    other = IngestWriter(store_engine, lambda: NOW)
    late = increment(time_ms=T0 + HOUR_MS + 1, value=1_000_000)
    other.apply(batch(late, collector_id="other"))
    assert read(store_engine) == (sum(range(1_080)) + 1_000_000, 1)
    assert read(store_engine) == (sum(range(1_080)) + 1_000_000, 0)


def test_a_window_inside_an_hour_gets_only_its_part(store_engine: Engine, filled: IngestWriter) -> None:
    read(store_engine)
    start = (T0 + 1_000_000) // STEP_MS * STEP_MS
    inside = [i for i in range(1_080) if start <= T0 + i * 10_000 < start + 2 * HOUR_MS]
    assert read(store_engine, Window(start, start + 2 * HOUR_MS, STEP_MS)) == (sum(inside), 0)


def test_each_database_has_a_cache_of_its_own(sqlite_engine: Engine) -> None:
    assert cache_of(sqlite_engine) is cache_of(sqlite_engine)


rows_of_hours = st.dictionaries(
    st.integers(0, 5), st.lists(st.integers(0, HOUR_MS - 1), unique=True, max_size=5)
)


@given(
    hours=rows_of_hours, reads=st.lists(st.tuples(st.integers(0, 6 * HOUR_MS), st.integers(1, 4 * HOUR_MS)))
)
def test_any_reads_through_a_tiny_cache_equal_reads_without(
    hours: dict[int, list[int]], reads: list[tuple[int, int]]
) -> None:
    times = np.array(sorted(h * HOUR_MS + t for h, ts in hours.items() for t in ts), dtype=np.float64)
    table = np.column_stack((times, times * 2, times * 3))
    versions = {h * HOUR_MS: (len(ts), 1.0) for h, ts in hours.items() if ts}
    cache = HourCache(max_rows=7)
    for start, length in reads:
        fetched = cache.read(1, start, start + length, versions, lambda a, b: between(table, a, b))
        np.testing.assert_array_equal(fetched, between(table, start, start + length))
        assert cache._rows == sum(len(rows) for _, rows in cache._hours.values()) <= 7


def between(table: np.ndarray[Any, Any], from_ms: int, to_ms: int) -> np.ndarray[Any, Any]:
    return table[(table[:, 0] >= from_ms) & (table[:, 0] < to_ms)]


def test_rows_that_came_in_after_the_version_was_read_are_not_kept_under_it() -> None:
    cache, calls = HourCache(), list[int]()

    def fetch(from_ms: int, to_ms: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        calls.append(from_ms)
        return np.array([[T0 + i, 1.0, 0.0] for i in range(3)])

    older = {T0: (2.0, 2.0, 1.0, 1.0, 1.0, float(T0 + 1), 0.0)}
    for _ in range(2):
        assert len(cache.read(1, T0, T0 + HOUR_MS, older, fetch)) == 3
    assert calls == [T0, T0]
