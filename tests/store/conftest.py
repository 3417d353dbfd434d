"""Help for the tests of the store: a fixed clock and short ways to write batches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from specscope_collectors.observations import Batch, Launch, Observation, Target
from specscope_server.store.ingest import IngestWriter

HOUR_MS = 3_600_000
T0 = 1_790_000_000_000 // HOUR_MS * HOUR_MS
"""A full hour in 2026; the tests' data begins here."""
NOW = T0 + 12 * HOUR_MS

Send = Callable[..., Batch]


def batch(*observations: Observation, sequence: int = 1, launch: str | None = "a", **fields: object) -> Batch:
    """Return a batch of one collector about one server."""
    values = {
        "collector_id": "c1",
        "target": Target(name="gpu1:30000", base_url="http://gpu1:30000"),
        **fields,
    }
    return Batch(sequence=sequence, launch_key=launch, observations=observations, **values)  # type: ignore[arg-type]


def launch(key: str = "a", **fields: object) -> Launch:
    """Return a launch."""
    return Launch(key=key, **{"time_ms": T0, "engine": "sglang", **fields})  # type: ignore[arg-type]


@pytest.fixture
def writer(store_engine: Engine) -> IngestWriter:
    """Writer whose clock stands still, with launch ``a`` known."""
    writer = IngestWriter(store_engine, lambda: NOW)
    writer.apply(batch(launch(), sequence=1))
    return writer
