"""A server with ten thousand series is read in bounded memory, whole."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
from tests.collectors.prometheus.recorded import INSTANCE, read
from tests.collectors.runner.engine import MemorySink
from tests.support.prometheus import need_prometheus, running

from specscope_collectors.clock import system_clock
from specscope_collectors.observations import Batch, HealthState, Increment, SourceHealth
from specscope_collectors.sources.prometheus.job import Config

SERIES, SCRAPES, EVERY_MS = 10_000, 12, 15_000
MAX_PEAK_BYTES = 120 * 2**20


class Counting(MemorySink):
    """Keeps sums and health only: what is stored is not the reader's memory."""

    sum = 0.0
    values = 0

    def apply(self, batch: Batch) -> bool:
        for each in batch.observations:
            if isinstance(each, Increment):
                self.sum += each.value
                self.values += 1
        kept = tuple(each for each in batch.observations if isinstance(each, SourceHealth))
        return super().apply(msgspec.structs.replace(batch, observations=kept))


def lines() -> Iterator[str]:
    begin_ms = system_clock() - 1_200_000
    for scrape in range(SCRAPES):
        at = (begin_ms + scrape * EVERY_MS) / 1000
        for number in range(SERIES):
            labels = f'tenant="t{number}",instance="{INSTANCE}",job="j"'
            yield f"sglang:generation_tokens_total{{{labels}}} {scrape * (number % 7)} {at:.3f}"


def test_ten_thousand_series_are_read_whole(tmp_path: Path) -> None:
    need_prometheus()
    sink = Counting()
    with running(tmp_path, lines()) as prometheus:
        tracemalloc.start()
        try:
            read(sink, Config(url=prometheus.url, back_fill="1h", raw="1h"))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sink.values == SERIES * (SCRAPES - 1)
    assert sink.sum == sum((SCRAPES - 1) * (number % 7) for number in range(SERIES))
    assert sink.health("prometheus").state is HealthState.OK
    assert peak < MAX_PEAK_BYTES
