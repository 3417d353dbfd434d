"""A log that is imported, imported compressed, and followed: each tells the store the same, once."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from sqlalchemy import Engine
from tests.collectors.follow.following import NOW_MS, Follower
from tests.collectors.log.reading import FIXTURES
from tests.store.conftest import rows

from specscope_server.cli.import_log import LogImport, LogPart
from specscope_server.settings import Settings
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

Sample: TypeAlias = tuple[tuple[int, str, str], int, float]
WITH_DUMP, WITHOUT_DUMP = "server-eagle3-chain-0.5.8.log", "server-eagle3-chain-0.5.23.log"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A fresh SQLite file."""
    return Settings(database=f"sqlite:///{tmp_path}/store.sqlite3")


@pytest.fixture
def store(settings: Settings) -> Iterator[Engine]:
    """The same, to look into."""
    engine = create_store_engine(settings.database)
    yield engine
    engine.dispose()


def bring(settings: Settings, data: bytes) -> None:
    """Import a log."""
    LogImport("gpu1", UTC).store([LogPart("log", partial(io.BytesIO, data))], settings, lambda: NOW_MS)


def follow(path: Path, engine: Engine) -> None:
    """Follow a log from its first line to its end, into the store."""
    follower = Follower(path, IngestWriter(engine, lambda: NOW_MS), from_beginning=True)  # type: ignore[arg-type]
    for _ in range(100):
        follower.step()
    follower.close()


def told(engine: Engine) -> tuple[int, int, list[Sample]]:
    """Return launches, events and the samples that are not about the source itself."""
    series = {
        number: (launch, metric, labels)
        for number, launch, metric, labels in rows(engine, "series", "id", "launch_id", "metric", "labels")
        if not metric.startswith("scrape.")
    }
    samples = rows(engine, "sample", "series_id", "time_ms", "value")
    found = sorted((series[number], time, value) for number, time, value in samples if number in series)
    return len(rows(engine, "launch")), len(rows(engine, "event")), found


@pytest.mark.parametrize("name", [WITH_DUMP, WITHOUT_DUMP])
def test_three_ways_to_read_one_log_are_one(
    settings: Settings, store: Engine, tmp_path: Path, name: str
) -> None:
    log = tmp_path / "sglang.log"
    log.write_bytes((FIXTURES / name).read_bytes())
    bring(settings, log.read_bytes())
    once = told(store)
    assert once[0] == 1
    assert once[1] >= 2
    assert len(once[2]) > 50
    bring(settings, gzip.compress(log.read_bytes()))
    assert told(store) == once
    follow(log, store)
    assert told(store) == once
