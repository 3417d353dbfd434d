"""A process to be killed: resumes, applies batch after batch, prints each sequence once acknowledged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count

from specscope_collectors.observations import (
    Batch,
    Distribution,
    Event,
    HealthState,
    Increment,
    Launch,
    Level,
    Observation,
    RequestRecord,
    SourceHealth,
    Target,
)
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

T0 = 1_790_000_000_000
COLLECTOR = "killed"
INCREMENTS = 40
"""Per batch: ten for each of four series."""


def make_batch(sequence: int) -> Batch:
    """Return the one batch that has this sequence, always the same."""
    return Batch(
        collector_id=COLLECTOR,
        sequence=sequence,
        target=Target(name="gpu1:30000", base_url="http://gpu1:30000"),
        launch_key="a",
        observations=tuple(_observations(sequence)),
        checkpoint=str(sequence).encode(),
    )


def _observations(sequence: int) -> Iterator[Observation]:
    time_ms = T0 + sequence * 20_000
    yield Launch(key="a", time_ms=T0, engine="sglang")
    for index in range(INCREMENTS):
        yield Increment(
            metric="spec.verify_calls",
            labels={"rank": str(index % 4)},
            time_ms=time_ms + index * 500,
            span_ms=2_000,
            value=sequence,
        )
    yield Level(metric="requests.running", labels={}, time_ms=time_ms, value=sequence)
    yield Distribution(
        metric="latency.queue",
        labels={},
        time_ms=time_ms,
        span_ms=20_000,
        bounds=(1.0,),
        buckets=(1.0, 2.0),
        count=3.0,
        sum=5.0,
    )
    yield RequestRecord(request_id=str(sequence), time_ms=time_ms)
    yield Event(kind="note", time_ms=time_ms, message=str(sequence))
    yield SourceHealth(source="s", time_ms=time_ms, state=HealthState.OK, url="u", duration_seconds=0.1)


def main(url: str) -> None:
    """Write until killed."""
    writer = IngestWriter(create_store_engine(url), lambda: T0 + 86_400_000)
    for sequence in count(writer.resume(COLLECTOR).sequence + 1):
        writer.apply(make_batch(sequence))
        sys.stdout.write(f"{sequence}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
