"""What a pass of reading takes from memory never differs from what the database would answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from random import Random
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, delete, event, select
from sqlalchemy.orm import Session
from tests.store.conftest import HOUR_MS, NOW, T0, batch, increment, launch, level

from specscope_server.kit.timerange import Window
from specscope_server.models import Sample, Server
from specscope_server.store.buckets import Buckets
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.latest import newest_times
from specscope_server.store.lookup import has_successor, launches_between
from specscope_server.store.one_pass import one_pass
from specscope_server.store.series_reader import find_series, read_buckets, read_levels
from specscope_server.store.tapes import UNUSED_MS, tapes_of

METRICS = ("spec.verify_calls", "requests.running")
STEP_MS = 2_500
BEGIN_MS = NOW - HOUR_MS
"""When samples begin; the clock of the passes goes on from a little later."""


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Collect what is asked of the database."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)


def looked(session: Session, now_ms: int, minutes: int) -> dict[str, Any]:
    """Return all that a pass might ask about the last minutes."""
    [server_id] = session.scalars(select(Server.id))
    begin_ms = now_ms - minutes * 60_000
    launches = launches_between(session, server_id, begin_ms, now_ms)
    series = find_series(session, metrics=METRICS, launch_ids=[one.id for one in launches])
    window = Window(begin_ms - begin_ms % STEP_MS, now_ms, STEP_MS)
    return {
        "launches": [one.id for one in launches],
        "superseded": [has_successor(session, one) for one in launches],
        "series": series,
        "of the server": find_series(session, metrics=METRICS, server_id=server_id),
        "newest": newest_times(session, [ref.id for ref in series]),
        "levels": read_levels(session, series, begin_ms, now_ms),
        "buckets": {key: arrays(found) for key, found in read_buckets(session, series, window).items()},
    }


def arrays(found: Buckets) -> dict[str, Any]:
    return {one.name: getattr(found, one.name) for one in fields(found)}


def check(engine: Engine, now_ms: int, minutes: int = 12) -> dict[str, Any]:
    """Compare a pass with reading as everybody does."""
    with Session(engine) as session:
        plain = looked(session, now_ms, minutes)
        servers = list(session.scalars(select(Server.id)))
    with Session(engine) as session, one_pass(session, servers, now_ms):
        np.testing.assert_equal(looked(session, now_ms, minutes), plain)
        np.testing.assert_equal(looked(session, now_ms, minutes), plain)  # and again what is remembered
    return plain


class Writing:
    """Writes samples of both metrics as time goes by."""

    def __init__(self, writer: IngestWriter) -> None:
        self.writer, self.sequence = writer, 1
        self.now_ms = BEGIN_MS

    def send(self, *observations: Any, key: str = "a", collector_id: str = "c1") -> None:
        self.sequence += 1
        self.writer.apply(batch(*observations, sequence=self.sequence, launch=key, collector_id=collector_id))

    def scrape(self, seconds: int, key: str = "a") -> None:
        """Read every five seconds for so long."""
        times = range(self.now_ms, self.now_ms + seconds * 1_000, 5_000)
        self.send(*(pair for time_ms in times for pair in values(time_ms)), key=key)
        self.now_ms += seconds * 1_000


def values(time_ms: int) -> tuple[Any, Any]:
    return increment(time_ms=time_ms, value=time_ms % 97), level(time_ms=time_ms, value=time_ms % 89)


def late(writing: Writing) -> None:
    other = IngestWriter(writing.writer._engine, lambda: NOW)
    other.apply(batch(*values(writing.now_ms - 400_001), collector_id="other", sequence=1))


def late_and_new(writing: Writing) -> None:
    writing.scrape(15)
    late(writing)


def restarted(writing: Writing) -> None:
    writing.send(launch("b", time_ms=writing.now_ms), key="b")
    writing.scrape(30, key="b")


def more_series(writing: Writing) -> None:
    labels = {"tp_rank": "1", "pp_rank": "0"}
    writing.send(increment(time_ms=writing.now_ms - 1, labels=labels, value=3.0))


def nothing(_: Writing) -> None:
    """A pass that finds what the last one found."""


@pytest.mark.parametrize("happens", [nothing, late, late_and_new, restarted, more_series])
def test_passes_see_what_happens_between_them(
    store_engine: Engine, writer: IngestWriter, happens: Callable[[Writing], None]
) -> None:
    writing = Writing(writer)
    writing.scrape(900)
    before = check(store_engine, writing.now_ms)
    happens(writing)
    after = check(store_engine, writing.now_ms)
    assert (str(after) == str(before)) == (happens is nothing)
    writing.scrape(20, key=after["launches"] and ("b" if happens is restarted else "a"))
    check(store_engine, writing.now_ms)


def test_where_samples_were_removed_roll_ups_stand_in(store_engine: Engine, writer: IngestWriter) -> None:
    writing = Writing(writer)
    writing.scrape(1_800)
    with store_engine.begin() as connection:
        connection.execute(delete(Sample).where(Sample.time_ms < writing.now_ms - 300_000))
    assert check(store_engine, writing.now_ms)["buckets"]
    assert not tapes_of(store_engine).begins(writing.now_ms)


def test_any_passes_equal_reading_without(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    writer.apply(batch(launch(), sequence=1))
    chance, writing = Random(5), Writing(writer)
    writing.scrape(60)
    for _ in range(40):
        chance.choice((nothing, late_and_new, more_series))(writing)
        writing.scrape(chance.choice((5, 15, 600)))
        check(sqlite_engine, writing.now_ms - chance.choice((0, 0, 3_000)), chance.choice((2, 12, 31, 65)))


def test_a_pass_asks_as_much_of_many_series_as_of_few(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    writer.apply(batch(launch(), sequence=1))
    writing, asked = Writing(writer), []
    for rank in range(40):
        labels = {"tp_rank": str(rank), "pp_rank": "0"}
        writing.send(increment(time_ms=BEGIN_MS - 1, labels=labels))
        if rank not in (0, 39):
            continue
        writing.scrape(300)
        for _ in range(2):
            with (
                Session(sqlite_engine) as session, statements(sqlite_engine) as found,
                one_pass(session, [1], writing.now_ms),
            ):  # fmt: skip
                looked(session, writing.now_ms, 12)
                looked(session, writing.now_ms, 9)
        asked.append(len(found))
    assert asked[0] == asked[1] < 10


def test_tapes_that_nobody_reads_go(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    writer.apply(batch(launch(), sequence=1))
    writing = Writing(writer)
    writing.scrape(600)
    check(sqlite_engine, writing.now_ms)
    tapes = tapes_of(sqlite_engine)
    assert len(tapes.begins(writing.now_ms)) == len(METRICS)
    with Session(sqlite_engine) as session:
        for later_ms in (1, UNUSED_MS + 1):
            with one_pass(session, [1], writing.now_ms + later_ms):
                """Nobody reads anything."""
    assert not tapes.begins(writing.now_ms)


def test_a_pass_ends_with_its_block(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    writer.apply(batch(launch(time_ms=T0), sequence=1))
    with Session(sqlite_engine) as session:
        with one_pass(session, [1], NOW):
            assert launches_between(session, 1, NOW - 1, NOW) == []
        assert not session.info
        assert find_series(session, metrics=METRICS, launch_ids=[]) == []
