"""Help for the tests of the store: a fixed clock, short ways to write batches, and a view of the tables."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from specscope_collectors.observations import (
    Batch,
    Distribution,
    Increment,
    Launch,
    Level,
    Observation,
    Target,
)
from specscope_server.models import Base
from specscope_server.store.ingest import IngestWriter

HOUR_MS = 3_600_000
T0 = 1_790_000_000_000 // (24 * HOUR_MS) * (24 * HOUR_MS)
"""Midnight of a day in 2026; the tests' data lies around it."""
NOW = T0 + 12 * HOUR_MS


def batch(*observations: Observation, sequence: int = 1, launch: str | None = "a", **fields: Any) -> Batch:
    """Return a batch of one collector about one server."""
    defaults = {"collector_id": "c1", "target": Target(name="gpu1:30000", base_url="http://gpu1:30000")}
    return Batch(sequence=sequence, launch_key=launch, observations=observations, **{**defaults, **fields})


def launch(key: str = "a", **fields: Any) -> Launch:
    """Return a launch."""
    return Launch(key=key, **{"time_ms": T0, "engine": "sglang", **fields})


def level(metric: str = "requests.running", **fields: Any) -> Level:
    """Return a level that is in order."""
    return Level(metric=metric, **{"labels": {}, "time_ms": T0, "value": 1.0, **fields})


def increment(metric: str = "spec.verify_calls", **fields: Any) -> Increment:
    """Return an increment that is in order."""
    return Increment(metric=metric, **{"labels": {}, "time_ms": T0, "span_ms": 5_000, "value": 1.0, **fields})


def histogram(metric: str = "latency.queue", **fields: Any) -> Distribution:
    """Return a distribution that is in order."""
    values = {
        "labels": {},
        "time_ms": T0,
        "span_ms": 5_000,
        "bounds": (1.0, 2.0),
        "buckets": (1.0, 2.0, 3.0),
        "count": 6.0,
        "sum": 10.0,
    }
    return Distribution(metric=metric, **{**values, **fields})


def rows(engine: Engine, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table as sorted tuples."""
    source = Base.metadata.tables[table]
    wanted = [source.c[name] for name in columns] or list(source.c)
    with engine.connect() as connection:
        return sorted(map(tuple, connection.execute(source.select().with_only_columns(*wanted))))


def everything(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables: what a test compares to say that nothing changed."""
    return {name: rows(engine, name) for name in Base.metadata.tables}


@pytest.fixture
def writer(store_engine: Engine) -> IngestWriter:
    """Writer whose clock stands still, with launch ``a`` known (its batch has the sequence 1)."""
    writer = IngestWriter(store_engine, lambda: NOW)
    writer.apply(batch(launch(), sequence=1))
    return writer
