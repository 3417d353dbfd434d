"""Batches are applied once, as a whole, by whomever and in whatever order they come."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError
from tests.store.conftest import NOW, T0, batch, everything, histogram, increment, launch, level, rows

from specscope_collectors.observations import Resume, Target
from specscope_server.kit.errors import InvalidInput
from specscope_server.store import migrate
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.limits import Limits
from specscope_server.store.refusal import Reason


def test_a_batch_sent_again_changes_nothing(store_engine: Engine, writer: IngestWriter) -> None:
    sent = batch(level(), increment(), histogram(), sequence=2)
    assert writer.apply_counted(sent).samples == 2
    before = everything(store_engine)
    again = writer.apply_counted(sent)
    assert not again.applied
    assert everything(store_engine) == before
    assert writer.statistics.repeated_batches == 1


def test_a_database_that_was_emptied_meanwhile_is_written_from_the_start(
    store_engine: Engine, writer: IngestWriter
) -> None:
    """`specscope db downgrade base`, then `upgrade`, under a running server: ids and partitions are gone."""
    writer.apply(batch(level(), increment(), histogram(), sequence=2))
    migrate.downgrade(store_engine, "base")
    with pytest.raises(DBAPIError):
        writer.apply(batch(level(time_ms=T0 + 1), sequence=3))
    migrate.upgrade(store_engine)
    for engine_row in ("b", "c"):  # other rows take the ids of the former ones
        IngestWriter(store_engine, lambda: NOW).apply(
            batch(launch(), level(labels={"x": engine_row}), collector_id=engine_row)
        )
    writer.apply(batch(launch(), level(), increment(), histogram(), sequence=1))
    ids = {series_id for series_id, *_ in rows(store_engine, "series", "id")}
    assert len(ids) == 5
    assert {series_id for series_id, *_ in rows(store_engine, "sample", "series_id")} <= ids
    assert len(rows(store_engine, "sample")) == 4
    assert len(rows(store_engine, "distribution")) == 1


def test_values_sent_again_under_another_sequence_are_counted_once(
    store_engine: Engine, writer: IngestWriter
) -> None:
    writer.apply(batch(level(), increment(value=3), histogram(), sequence=2))
    tables = ("sample", "sample_1m", "sample_1h", "distribution", "distribution_10m", "latest")
    before = {name: rows(store_engine, name) for name in tables}
    again = writer.apply_counted(batch(level(), increment(value=3), histogram(), sequence=3))
    assert (again.samples, again.distributions, again.duplicates) == (0, 0, 3)
    assert {name: rows(store_engine, name) for name in tables} == before


def test_of_two_values_at_one_time_the_first_stays(store_engine: Engine, writer: IngestWriter) -> None:
    applied = writer.apply_counted(batch(level(value=7), level(value=8), sequence=2))
    assert (applied.samples, applied.duplicates) == (1, 1)
    writer.apply(batch(level(value=9), sequence=3))
    assert rows(store_engine, "sample", "value") == [(7.0,)]
    assert rows(store_engine, "sample_1m", "n", "sum", "max") == [(1, 7.0, 7.0)]


def test_a_late_sample_is_stored_but_is_not_the_latest(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(level(time_ms=T0 + 10_000, value=2), sequence=2))
    writer.apply(batch(level(time_ms=T0 + 5_000, value=1), sequence=3))
    assert rows(store_engine, "latest", "time_ms", "value") == [(T0 + 10_000, 2.0)]
    assert rows(store_engine, "sample_1m", "n", "sum", "last", "last_ms") == [(2, 3.0, 2.0, T0 + 10_000)]


def test_labels_in_another_order_are_the_same_series(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(level(labels={"a": "1", "b": "2"}), sequence=2))
    writer.apply(batch(level(labels={"b": "2", "a": "1"}, time_ms=T0 + 1), sequence=3))
    assert rows(store_engine, "series", "labels") == [('{"a":"1","b":"2"}',)]
    assert len(rows(store_engine, "sample")) == 2


def test_a_collector_resumes_where_it_left_off(writer: IngestWriter) -> None:
    assert writer.resume("unknown") == Resume()
    writer.apply(batch(sequence=2, checkpoint=b"\x00\xff state"))
    writer.apply(batch(sequence=3, launch=None))
    assert writer.resume("c1") == Resume(sequence=3, checkpoint=b"\x00\xff state", launch_key="a")


def test_a_second_writer_sees_what_the_first_applied(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(level(), sequence=2))
    other = IngestWriter(store_engine, lambda: NOW)
    assert other.resume("c1").sequence == 2
    assert not other.apply_counted(batch(level(), sequence=2)).applied
    assert other.apply_counted(batch(level(time_ms=T0 + 1), sequence=3)).samples == 1
    assert len(rows(store_engine, "series")) == 1


def test_measurements_of_a_launch_never_announced_are_kept(
    store_engine: Engine, writer: IngestWriter
) -> None:
    writer.apply(batch(level(), sequence=2, launch="lost"))
    assert ("lost", "unknown") in rows(store_engine, "launch", "key", "engine")
    writer.apply(batch(launch("lost", engine_version="0.5.8"), sequence=3, launch="lost"))
    assert ("lost", "sglang", "0.5.8") in rows(store_engine, "launch", "key", "engine", "engine_version")


def test_a_launch_sent_again_keeps_its_first_words(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(launch(reason="restarted", time_ms=T0 + 60_000), sequence=2))
    assert rows(store_engine, "launch", "reason", "first_seen_ms") == [("first seen", T0)]


def test_a_version_that_becomes_known_later_is_kept(store_engine: Engine, writer: IngestWriter) -> None:
    unknown = launch(engine_version=None, version_source=None)
    steps = (
        (unknown, (None, None)),
        (
            launch(engine_version="0.5.9 or later", version_source="log_lines"),
            ("0.5.9 or later", "log_lines"),
        ),
        (launch(engine_version="0.5.9–0.5.22", version_source="log_lines"), ("0.5.9–0.5.22", "log_lines")),
        (unknown, ("0.5.9–0.5.22", "log_lines")),
        (launch(engine_version="0.5.8", version_source="metric_names"), ("0.5.9–0.5.22", "log_lines")),
    )
    for sequence, (record, expected) in enumerate(steps, start=1):
        writer.apply(batch(record, sequence=sequence))
        assert rows(store_engine, "launch", "engine_version", "version_source") == [expected]


def test_scrape_metrics_belong_to_the_server_and_need_no_launch(
    store_engine: Engine, writer: IngestWriter
) -> None:
    up = level("scrape.up", labels={"source": "sglang_metrics"})
    assert writer.apply_counted(batch(up, sequence=2, launch=None)).samples == 1
    later = level("scrape.up", labels={"source": "sglang_metrics"}, time_ms=T0 + 1)
    assert writer.apply_counted(batch(later, sequence=3)).samples == 1
    assert rows(store_engine, "series", "launch_id") == [(None,)]


def test_many_threads_with_the_same_batches_apply_each_once(store_engine: Engine, store_url: str) -> None:
    writers = [IngestWriter(store_engine, lambda: NOW) for _ in range(2)]
    batches = [
        batch(launch(), *(increment(time_ms=T0 + i * 1_000 + k, value=1) for k in range(50)), sequence=i + 1)
        for i in range(20)
    ]
    failures: list[BaseException] = []

    def send(writer: IngestWriter) -> None:
        try:
            for each in batches:
                writer.apply(each)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(writers[i % 2],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(writer.statistics.batches for writer in writers) == 20
    assert sum(row[0] for row in rows(store_engine, "sample_1h", "n")) == 1_000


def test_two_collectors_of_one_server_do_not_count_a_value_twice(store_engine: Engine) -> None:
    sent = [increment(labels={"rank": str(i)}, time_ms=T0 + k) for i in range(20) for k in range(20)]
    barrier = threading.Barrier(2)
    failures: list[BaseException] = []

    def send(collector: str) -> None:
        writer = IngestWriter(store_engine, lambda: NOW)
        try:
            barrier.wait(10)
            writer.apply(batch(launch(), *sent, collector_id=collector))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(rows(store_engine, "sample")) == 400
    assert sum(n for (n,) in rows(store_engine, "sample_10m", "n")) == 400


def test_a_batch_that_fails_in_the_middle_leaves_nothing(store_engine: Engine, writer: IngestWriter) -> None:
    before = everything(store_engine)
    sent = batch(level(labels={"new": "series"}), histogram(), sequence=2)

    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "INSERT INTO distribution_1h" in statement:
            raise RuntimeError("the disk is on fire")

    event.listen(store_engine, "before_cursor_execute", fail)
    with pytest.raises(RuntimeError, match="on fire"):
        writer.apply(sent)
    event.remove(store_engine, "before_cursor_execute", fail)
    assert everything(store_engine) == before
    assert writer.apply_counted(sent).samples == 1
    assert len(rows(store_engine, "series")) == 2


def test_new_series_beyond_the_limit_are_refused_and_known_ones_go_on(store_engine: Engine) -> None:
    writer = IngestWriter(store_engine, lambda: NOW, Limits(max_series_per_launch=3))
    many = [level(labels={"i": str(i)}) for i in range(5)]
    applied = writer.apply_counted(batch(launch(), *many))
    assert (applied.samples, applied.refused) == (3, {Reason.TOO_MANY_SERIES: 2})
    more = [level(labels={"i": str(i)}, time_ms=T0 + 1) for i in range(5)]
    assert writer.apply_counted(batch(*more, sequence=2)).samples == 3
    restarted = batch(launch("b"), *more, sequence=3, launch="b")
    assert writer.apply_counted(restarted).samples == 3, "a restart begins again at 0"


@pytest.mark.parametrize(
    "fields",
    [
        {"collector_id": ""},
        {"collector_id": "a\0b"},
        {"target": Target(name="", base_url="x")},
        {"sequence": 0},
        {"sequence": 2**63},
        {"launch": ""},
    ],
)
def test_a_batch_whose_own_names_cannot_be_is_refused_as_a_whole(
    sqlite_engine: Engine, fields: dict[str, object]
) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    with pytest.raises(InvalidInput, match="batch's"):
        writer.apply(batch(level(), **fields))  # type: ignore[arg-type]
    assert rows(sqlite_engine, "collector") == []


def test_a_database_that_is_not_migrated_says_so_by_failing(sqlite_engine: Engine) -> None:
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE sample")
    with pytest.raises(DBAPIError):
        IngestWriter(sqlite_engine, lambda: NOW).apply(batch(launch(), level()))
    assert rows(sqlite_engine, "collector") == []


def test_times_of_last_sight_move_forward_only(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(level(time_ms=T0 + 9), sequence=2))
    writer.apply(batch(level(time_ms=T0 + 5), sequence=3))
    assert rows(store_engine, "server", "last_seen_ms") == [(T0 + 9,)]
    assert rows(store_engine, "launch", "last_seen_ms") == [(T0 + 9,)]
