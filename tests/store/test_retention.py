"""What is too old goes, what is not stays, and the file gets smaller."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.store.conftest import HOUR_MS, NOW, T0, batch, everything, histogram, increment, level, rows

from specscope_collectors.observations import Event, RequestRecord
from specscope_server.store import dialects, maintenance
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.maintenance import disk_use
from specscope_server.store.retention import Retention, RetentionLoop, cutoff_ms, enforce

DAY_MS = 24 * HOUR_MS
DAYS = [0, 1, 8, 31, 181, 366, 1_100]
"""Ages of the test's data in days, counted back from T0."""

KEPT_DAYS = {
    "sample": 7,
    "sample_1m": 30,
    "sample_10m": 180,
    "sample_1h": 1_095,
    "distribution": 7,
    "distribution_1m": 30,
    "distribution_10m": 180,
    "distribution_1h": 1_095,
    "request": 30,
    "event": 365,
}


@pytest.fixture
def aged(writer: IngestWriter) -> IngestWriter:
    """Write one of everything at each age."""
    for sequence, days in enumerate(DAYS, 2):
        time: dict[str, Any] = {"time_ms": T0 - days * DAY_MS}
        records = (
            level(**time),
            increment(**time),
            histogram(**time),
            Event(kind="note", message="m", **time),
            RequestRecord(request_id=str(days), **time),
        )
        assert writer.apply_counted(batch(*records, sequence=sequence)).refused == {}
    return writer


@pytest.mark.parametrize("table", KEPT_DAYS)
def test_each_table_keeps_its_days(store_engine: Engine, aged: IngestWriter, table: str) -> None:
    enforce(store_engine, Retention(), T0 + HOUR_MS)
    ages = {(T0 - time_ms) // DAY_MS for (time_ms,) in rows(store_engine, table, "time_ms")}
    assert ages == {days for days in DAYS if days <= KEPT_DAYS[table]}


def test_a_second_pass_finds_nothing(store_engine: Engine, aged: IngestWriter) -> None:
    assert enforce(store_engine, Retention(), T0)
    before = everything(store_engine)
    assert not enforce(store_engine, Retention(), T0)
    assert everything(store_engine) == before


def test_the_newest_values_and_the_series_stay(store_engine: Engine, aged: IngestWriter) -> None:
    before = rows(store_engine, "latest"), rows(store_engine, "series"), rows(store_engine, "collector")
    enforce(store_engine, Retention(), NOW + 5_000 * DAY_MS)
    assert rows(store_engine, "sample") == rows(store_engine, "sample_1h") == []
    after = rows(store_engine, "latest"), rows(store_engine, "series"), rows(store_engine, "collector")
    assert after == before


def test_writing_goes_on_after_the_days_were_dropped(store_engine: Engine, aged: IngestWriter) -> None:
    enforce(store_engine, Retention(), T0)
    late = increment(time_ms=T0 - 8 * DAY_MS + 1, value=5)
    assert aged.apply_counted(batch(late, level(time_ms=T0 + 1), sequence=99)).samples == 2


def test_many_rows_of_one_series_go_in_many_steps(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "ROWS_PER_STEP", 200)
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    writer.apply(batch(*(level(time_ms=T0 - 9 * DAY_MS + i) for i in range(5_000)), level()))
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    removed = enforce(sqlite_engine, Retention(), T0, count)
    assert removed.rows["sample"] == 5_000
    assert steps > 20
    assert len(rows(sqlite_engine, "sample")) == 1


def test_a_stop_ends_the_pass_between_two_steps(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "ROWS_PER_STEP", 200)
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    writer.apply(batch(*(level(time_ms=T0 - 9 * DAY_MS + i) for i in range(1_000))))
    assert 0 < sum(enforce(sqlite_engine, Retention(), T0, lambda: True).rows.values()) < 1_000


def test_the_cutoff_is_a_full_hour_so_that_no_roll_up_loses_half_its_samples() -> None:
    assert cutoff_ms(7, T0 + HOUR_MS + 1_234) == T0 + HOUR_MS - 7 * DAY_MS
    assert cutoff_ms(0.5, T0) == T0 - DAY_MS // 2


def test_the_sqlite_file_gets_smaller(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "FREE_PAGES_KEPT", 50)
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    start = T0 - 9 * DAY_MS
    writer.apply(batch(*(level(time_ms=start + i, value=i / 7) for i in range(30_000))))
    full = pages(sqlite_engine)
    enforce(sqlite_engine, Retention(minute_days=1, ten_minutes_days=1, hour_days=1), T0)
    assert pages(sqlite_engine) < full / 2
    assert disk_use(sqlite_engine) > 0


def pages(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("PRAGMA page_count").scalar_one())


@pytest.mark.postgres
def test_old_partitions_are_dropped_and_new_ones_made(postgres_engine: Engine) -> None:
    writer = IngestWriter(postgres_engine, lambda: NOW)
    writer.apply(batch(level(time_ms=T0 - 9 * DAY_MS), level(time_ms=T0 - 1), level(time_ms=T0)))
    with postgres_engine.connect() as connection:
        assert len(dialects.partitions(connection)) == 6
    removed = enforce(postgres_engine, Retention(), T0)
    assert len(removed.partitions) == 2
    assert all(name.startswith(("sample_p", "distribution_p")) for name in removed.partitions)
    assert len(rows(postgres_engine, "sample")) == 2


def test_the_loop_enforces_until_it_is_stopped(store_engine: Engine, aged: IngestWriter) -> None:
    asked = threading.Event()

    def clock() -> int:
        asked.set()
        return T0

    loop = RetentionLoop(store_engine, Retention(), clock, interval_seconds=3_600)
    thread = threading.Thread(target=loop.run)
    thread.start()
    assert asked.wait(10)
    loop.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_the_loop_survives_a_failing_database(sqlite_engine: Engine) -> None:
    loop = RetentionLoop(sqlite_engine, Retention(), lambda: T0, interval_seconds=0.001)
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO server VALUES (1, 'a', 'b', 0, 0)")
        connection.exec_driver_sql("DROP TABLE event")
    calls = 0

    def clock() -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            loop.stop()
        return T0

    loop._clock = clock
    loop.run()
    assert calls == 3
