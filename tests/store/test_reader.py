"""What is written is read back, at every resolution alike."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from specscope_collectors.observations import Distribution, Increment, Level
from specscope_server.kit.timerange import Window
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.series_reader import find_series, read_buckets, read_distributions
from tests.store.conftest import HOUR_MS, T0, batch


@pytest.mark.parametrize("step_ms", [5_000, 36_000, 60_000, 600_000, HOUR_MS])
def test_sums_are_exact_at_every_resolution(store_engine: Engine, writer: IngestWriter, step_ms: int) -> None:
    growth = [
        Increment(metric="spec.verify_calls", labels={}, time_ms=T0 + i * 5_000, span_ms=5_000, value=i)
        for i in range(2_000)
    ]
    assert writer.apply_counted(batch(*growth, sequence=2)).samples == 2_000
    with Session(store_engine) as session:
        series = find_series(session, metrics=["spec.verify_calls"])
        window = Window(T0, T0 + 9_000_123, step_ms)
        [buckets] = read_buckets(session, series, window).values()
    assert buckets.sum.sum() == sum(range(1_801))
    assert buckets.n.sum() == 1_801
    assert buckets.span_ms.sum() == 1_801 * 5_000


def test_series_are_found_by_metric_and_by_a_subset_of_their_labels(
    store_engine: Engine, writer: IngestWriter
) -> None:
    levels = [
        Level(metric="requests.running", labels={"tp_rank": str(rank), "model": "m"}, time_ms=T0, value=rank)
        for rank in range(3)
    ]
    writer.apply(batch(*levels, sequence=2))
    with Session(store_engine) as session:
        [found] = find_series(session, metrics=["requests.running"], labels={"tp_rank": "2"})
        assert found.labels == {"tp_rank": "2", "model": "m"}
        assert find_series(session, metrics=["requests.queued"]) == []
        assert find_series(session, metrics=["requests.running"], labels={"tp_rank": "3"}) == []


def test_histograms_add_up(store_engine: Engine, writer: IngestWriter) -> None:
    histograms = [
        Distribution(
            metric="latency.queue",
            labels={},
            time_ms=T0 + i * 5_000,
            span_ms=5_000,
            bounds=(1.0, 2.0),
            buckets=(1.0, 2.0, 3.0),
            count=6,
            sum=10.0,
        )
        for i in range(200)
    ]
    writer.apply(batch(*histograms, sequence=2))
    with Session(store_engine) as session:
        series = find_series(session, metrics=["latency.queue"])
        [[read]] = read_distributions(session, series, Window(T0, T0 + HOUR_MS, 600_000)).values()
    assert read.bounds == (1.0, 2.0)
    assert read.counts.sum(axis=0).tolist() == [200, 400, 600]
    assert read.count.sum() == 1_200
    assert read.sum.sum() == 2_000
