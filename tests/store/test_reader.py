"""What is written is read back: every resolution gives what all samples taken at once give."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.store.conftest import HOUR_MS, NOW, T0, batch, histogram, increment, launch, level, rows

from specscope_server.kit.timerange import Window
from specscope_server.store.buckets import Buckets
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.latest import newest_times
from specscope_server.store.one_pass import one_pass
from specscope_server.store.resolution import Segment, plan
from specscope_server.store.retention import Retention, enforce
from specscope_server.store.series_reader import find_series, read_buckets, read_distributions, read_levels

MINUTE_MS = 60_000


def read(engine: Engine, metric: str, window: Window) -> dict[str, Buckets]:
    """Return label ``s`` → buckets."""
    with Session(engine) as session:
        series = find_series(session, metrics=[metric])
        found = read_buckets(session, series, window)
        return {ref.labels["s"]: found[ref.id] for ref in series if ref.id in found}


def brute_force(samples: list[tuple[int, float, int]], window: Window) -> dict[str, list[Any]]:
    """Bucket (time, value, span) one by one."""
    groups = defaultdict(list)
    for time_ms, value, span in sorted(samples):
        if window.from_ms <= time_ms < window.to_ms:
            groups[(time_ms - window.from_ms) // window.step_ms].append((value, span))
    nan = float("nan")
    cells = [groups.get(i, []) for i in range(window.buckets)]
    return {
        "n": [len(cell) for cell in cells],
        "sum": [float(sum(value for value, _ in cell)) for cell in cells],
        "min": [min((value for value, _ in cell), default=nan) for cell in cells],
        "max": [max((value for value, _ in cell), default=nan) for cell in cells],
        "last": [cell[-1][0] if cell else nan for cell in cells],
        "span_ms": [sum(span for _, span in cell) for cell in cells],
    }


@pytest.fixture
def samples(writer: IngestWriter) -> dict[str, list[tuple[int, float, int]]]:
    """Five hours of two series with gaps and jitter, of both kinds, the same times for both."""
    chance = random.Random(7)
    data: dict[str, list[tuple[int, float, int]]] = {"x": [], "y": []}
    for name, points in data.items():
        time_ms = T0 - 2 * HOUR_MS - 17
        while time_ms < T0 + 3 * HOUR_MS:
            time_ms += chance.choice([5_000, 5_003, 4_990, 61_000, 700_000 if name == "y" else 5_000])
            points.append((time_ms, float(chance.randrange(1, 1_000)), chance.randrange(1, 9_000)))
    sent = [
        make
        for name, points in data.items()
        for time_ms, value, span in points
        for make in (
            increment(labels={"s": name}, time_ms=time_ms, value=value, span_ms=span),
            level(labels={"s": name}, time_ms=time_ms, value=value),
        )
    ]
    chance.shuffle(sent)
    for sequence, start in enumerate(range(0, len(sent), 1_000), 2):
        writer.apply(batch(*sent[start : start + 1_000], sequence=sequence))
    return data


STEPS = [5_000, 36_000, MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 2 * HOUR_MS, 90 * MINUTE_MS]


@pytest.mark.parametrize("step_ms", STEPS)
def test_buckets_equal_brute_force_wherever_the_window_ends(
    store_engine: Engine, writer: IngestWriter, samples: dict[str, list[tuple[int, float, int]]], step_ms: int
) -> None:
    start = (T0 - HOUR_MS) // step_ms * step_ms
    for end in (start + 2 * HOUR_MS, start + 2 * HOUR_MS + 1, T0 + 4_321_017, samples["x"][900][0]):
        window = Window(start, end, step_ms)
        for metric, spans in (("spec.verify_calls", 1), ("requests.running", 0)):
            found = read(store_engine, metric, window)
            assert set(found) == {"x", "y"}
            for name, buckets in found.items():
                expected = brute_force([(t, v, s * spans) for t, v, s in samples[name]], window)
                for field, values in expected.items():
                    np.testing.assert_array_equal(
                        getattr(buckets, field), values, err_msg=f"{field} of {metric}"
                    )


def test_the_coarsest_resolution_that_divides_the_step_is_read(
    store_engine: Engine, samples: dict[str, list[tuple[int, float, int]]]
) -> None:
    expected = {36_000: 0, MINUTE_MS: MINUTE_MS, 90 * MINUTE_MS: 600_000, 2 * HOUR_MS: HOUR_MS}
    for step_ms, resolution_ms in expected.items():
        start = T0 // step_ms * step_ms - step_ms
        window = Window(start, start + 4 * HOUR_MS, step_ms)
        assert read(store_engine, "requests.running", window)["x"].resolution_ms == resolution_ms


def test_series_without_samples_in_the_window_are_left_out(
    store_engine: Engine, samples: dict[str, list[tuple[int, float, int]]]
) -> None:
    assert (
        read(store_engine, "requests.running", Window(T0 + 9 * HOUR_MS, T0 + 10 * HOUR_MS, MINUTE_MS)) == {}
    )
    assert read(store_engine, "requests.running", Window(T0, T0, MINUTE_MS)) == {}


def test_a_gap_is_a_gap_and_not_zero(store_engine: Engine, writer: IngestWriter) -> None:
    labels = {"s": "x"}
    writer.apply(
        batch(level(labels=labels, value=0.0), level(labels=labels, time_ms=T0 + 120_000), sequence=2)
    )
    buckets = read(store_engine, "requests.running", Window(T0, T0 + 180_000, MINUTE_MS))["x"]
    assert buckets.n.tolist() == [1, 0, 1]
    assert buckets.sum.tolist() == [0.0, 0.0, 1.0]
    assert np.isnan(buckets.last).tolist() == [False, True, False]
    assert np.isnan(buckets.min).tolist() == np.isnan(buckets.max).tolist() == [False, True, False]


def test_where_raw_samples_are_gone_roll_ups_stand_in(
    store_engine: Engine, samples: dict[str, list[tuple[int, float, int]]]
) -> None:
    enforce(store_engine, Retention(raw_days=0.5), T0 + 12 * HOUR_MS)
    assert first_raw(store_engine) >= T0
    window = Window((T0 - 2 * HOUR_MS) // 36_000 * 36_000, T0 + 2 * HOUR_MS, 36_000)
    buckets = read(store_engine, "spec.verify_calls", window)["x"]
    inside = [value for time, value, _ in samples["x"] if T0 - 2 * HOUR_MS <= time < window.to_ms]
    assert buckets.sum.sum() == sum(inside), "no growth is lost"
    assert buckets.resolution_ms == MINUTE_MS
    fine = Window(T0, T0 + 2 * HOUR_MS, 36_000)
    assert read(store_engine, "spec.verify_calls", fine)["x"].resolution_ms == 0


def first_raw(engine: Engine) -> int:
    """Return the time of the oldest raw sample."""
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT min(time_ms) FROM sample").scalar_one())


def test_series_are_found_by_metric_server_launch_and_a_subset_of_labels(
    store_engine: Engine, writer: IngestWriter
) -> None:
    levels = [level(labels={"tp_rank": str(rank), "model": "m"}, value=rank) for rank in range(3)]
    writer.apply(batch(*levels, sequence=2))
    writer.apply(batch(launch("b"), *levels, sequence=3, launch="b"))
    with Session(store_engine) as session:
        both = find_series(session, metrics=["requests.running"], labels={"tp_rank": "2"})
        assert [ref.labels for ref in both] == [{"tp_rank": "2", "model": "m"}] * 2
        [one] = find_series(
            session,
            metrics=["requests.running"],
            launch_ids=[both[0].launch_id or 0],
            labels={"tp_rank": "2"},
        )
        assert one == both[0]
        assert len(find_series(session, metrics=["requests.running"], server_id=one.server_id)) == 6
        assert find_series(session, metrics=["requests.running"], server_id=one.server_id + 1) == []
        assert find_series(session, metrics=["requests.running"], launch_ids=[]) == []
        assert find_series(session, metrics=["requests.queued"]) == []
        assert find_series(session, metrics=["requests.running"], labels={"tp_rank": "3"}) == []


def test_the_newest_values(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(level(value=1), level(value=2, time_ms=T0 + 1), increment(value=5), sequence=2))
    with Session(store_engine) as session:
        found = find_series(session, metrics=["requests.running", "spec.verify_calls", "requests.queued"])
        newest = newest_times(session, [ref.id for ref in found] + [10**6])
    metric = {ref.id: ref.metric for ref in found}
    stored = rows(store_engine, "latest", "series_id", "time_ms", "value", "span_ms")
    assert [(metric[series_id], *more) for series_id, *more in stored] == [
        ("requests.running", T0 + 1, 2.0, 0),
        ("spec.verify_calls", T0, 5.0, 5_000),
    ]
    assert newest == {series_id: time_ms for series_id, time_ms, *_ in stored}


@pytest.mark.parametrize("step_ms", [7_000, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS])
def test_histograms_add_up_per_bucket_and_layout(
    store_engine: Engine, writer: IngestWriter, step_ms: int
) -> None:
    sent = [histogram(time_ms=T0 + i * 5_000) for i in range(2_000)]
    other = [
        histogram(time_ms=T0 + i * 5_000, bounds=(9.0,), buckets=(1.0, 5.0), count=6.0) for i in range(10)
    ]
    writer.apply(batch(*sent, *other, sequence=2))
    window = Window(T0 // step_ms * step_ms, T0 + 2 * HOUR_MS + 12_345, step_ms)
    with Session(store_engine) as session:
        series = find_series(session, metrics=["latency.queue"])
        [first, second] = read_distributions(session, series, window)[series[0].id]
    inside = sum(record.time_ms < window.to_ms for record in sent)
    assert (first.bounds, second.bounds) == ((1.0, 2.0), (9.0,))
    assert first.counts.shape == (window.buckets, 3)
    assert first.counts.sum(axis=0).tolist() == [inside, 2 * inside, 3 * inside]
    assert first.counts.sum(axis=1).tolist() == first.count.tolist()
    assert first.sum.sum() == 10 * inside
    assert second.counts.sum(axis=0).tolist() == [10, 50]
    expected = np.bincount(
        [(r.time_ms - window.from_ms) // step_ms for r in sent[:inside]], minlength=window.buckets
    )
    assert (first.count / 6).tolist() == expected.tolist()


def test_no_series_no_answer(store_engine: Engine) -> None:
    with Session(store_engine) as session:
        window = Window(T0, NOW, MINUTE_MS)
        assert read_buckets(session, [], window) == {}
        assert read_distributions(session, [], window) == {}


def test_the_plan_reads_a_short_tail_at_finer_resolutions() -> None:
    end = T0 + 3 * HOUR_MS + 11 * MINUTE_MS + 61_500
    assert plan(Window(T0, end, HOUR_MS), lambda _: T0) == [
        Segment(HOUR_MS, T0, T0 + 3 * HOUR_MS),
        Segment(600_000, T0 + 3 * HOUR_MS, T0 + 3 * HOUR_MS + 600_000),
        Segment(MINUTE_MS, T0 + 3 * HOUR_MS + 600_000, T0 + 3 * HOUR_MS + 720_000),
        Segment(0, T0 + 3 * HOUR_MS + 720_000, end),
    ]


def test_the_plan_reads_what_is_gone_at_coarser_resolutions() -> None:
    oldest = {0: T0 + 4 * HOUR_MS + 5, MINUTE_MS: T0 + 2 * HOUR_MS, 600_000: T0 + HOUR_MS, HOUR_MS: T0}
    assert plan(Window(T0, T0 + 5 * HOUR_MS, 30_000), oldest.get) == [
        Segment(HOUR_MS, T0, T0 + HOUR_MS),
        Segment(600_000, T0 + HOUR_MS, T0 + 2 * HOUR_MS),
        Segment(MINUTE_MS, T0 + 2 * HOUR_MS, T0 + 4 * HOUR_MS),
        Segment(0, T0 + 4 * HOUR_MS, T0 + 5 * HOUR_MS),
    ]


def test_the_plan_of_nothing_is_nothing() -> None:
    assert plan(Window(T0, T0 + HOUR_MS, 30_000), lambda _: None) == []


@pytest.mark.parametrize("in_pass", [False, True], ids=["alone", "in a pass"])
def test_levels_of_a_range_without_samples_are_none(
    store_engine: Engine, writer: IngestWriter, in_pass: bool
) -> None:
    writer.apply(batch(level(), sequence=2))
    with Session(store_engine) as session, contextlib.ExitStack() as stack:
        series = find_series(session, metrics=["requests.running"])
        assert series
        if in_pass:
            stack.enter_context(one_pass(session, [1], T0 + 1_000_000))
        assert read_levels(session, series, T0 + 600_000, T0 + 1_000_000) == {}
        assert len(read_levels(session, series, T0, T0 + 1_000)) == 1
