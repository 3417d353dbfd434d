"""A process that fills a spool with batches known in advance and pushes them: `feeder SPOOL URL ENOUGH`.

It goes on where its spool says, so it may be killed at any moment. When there is a file ENOUGH it adds no
more, and ends when all is at the server.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from specscope_collectors.observations import (
    Batch,
    Distribution,
    Event,
    Increment,
    Launch,
    Observation,
    Target,
)
from specscope_collectors.push import Pusher
from specscope_collectors.push_options import PushOptions
from specscope_collectors.spool import Spool, SpoolLimits
from specscope_collectors.spool_sink import SpoolSink

COLLECTORS = ("x", "y", "z")
INCREMENTS = 10
"""In each batch."""
BACKLOG = 60
"""Batches that may wait: always some, and few enough for the end to come soon."""
START_MS = int(time.time() * 1_000) // 3_600_000 * 3_600_000 - 86_400_000


def make_batch(collector: str, sequence: int) -> Batch:
    """Return the one batch of this collector and sequence."""
    return Batch(
        collector_id=collector,
        sequence=sequence,
        target=Target(name=f"gpu-{collector}", base_url=f"http://{collector}"),
        launch_key="a",
        observations=tuple(_observations(sequence)),
        checkpoint=str(sequence).encode(),
    )


def _observations(sequence: int) -> Iterator[Observation]:
    time_ms = START_MS + sequence * 1_000
    yield Launch(key="a", time_ms=START_MS, engine="sglang")
    for rank in range(INCREMENTS):
        labels = {"rank": str(rank)}
        yield Increment(
            metric="spec.verify_calls", labels=labels, time_ms=time_ms, span_ms=1_000, value=sequence + rank
        )
    yield Distribution(
        metric="latency.queue", labels={}, time_ms=time_ms, span_ms=1_000, bounds=(1.0,), buckets=(1.0, 2.0),
        count=3.0, sum=5.0,
    )  # fmt: skip
    yield Event(kind="note", time_ms=time_ms, message=str(sequence))


def expected(counts: Sequence[int]) -> dict[str, float]:
    """Return what the database holds when each collector has sent so many batches: query → number.

    Events have no key, so that a batch applied twice would show in their number.
    """
    growth = sum(
        sequence + rank for count in counts for sequence in range(1, count + 1) for rank in range(INCREMENTS)
    )
    series = "SELECT id FROM series WHERE metric = 'spec.verify_calls'"
    found = {
        "SELECT count(*) FROM event WHERE kind = 'note'": sum(counts),
        "SELECT sum(count) FROM distribution": 3 * sum(counts),
        f"SELECT sum(value) FROM sample WHERE series_id IN ({series})": growth,
        f"SELECT count(*) FROM sample WHERE series_id IN ({series})": sum(counts) * INCREMENTS,
    }
    for suffix in ("1m", "10m", "1h"):
        found[f"SELECT sum(sum) FROM sample_{suffix} WHERE series_id IN ({series})"] = growth
    return {query: float(value) for query, value in found.items()}


def counts_of(folder: Path) -> list[int]:
    """Return how many batches each collector put into a spool that nobody uses."""
    spool = Spool(folder)
    try:
        assert spool.count == 0, "something was not sent"
        return [spool.resume(name).sequence for name in COLLECTORS]
    finally:
        spool.close()


def main(argv: list[str]) -> int:
    """Feed and push until all is sent."""
    folder, url, enough = Path(argv[0]), argv[1], Path(argv[2])
    spool = Spool(folder, SpoolLimits(segment_bytes=64 * 1024))
    collector = Target(name="collector:test", base_url="collector://test")
    sink = SpoolSink(spool, collector)
    options = PushOptions(
        server=url, most_batches=20, linger_seconds=0.005, first_wait_seconds=0.02, longest_wait_seconds=0.1,
        timeout_seconds=10,
    )  # fmt: skip
    pusher = Pusher(spool, sink, options, collector)
    pusher.start()
    while not enough.exists():
        for name in COLLECTORS:
            assert sink.apply(make_batch(name, sink.resume(name).sequence + 1))
        while spool.count > BACKLOG and not enough.exists():
            time.sleep(0.001)
    while spool.count:
        time.sleep(0.005)
    pusher.stop()
    spool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
