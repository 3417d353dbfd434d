"""What is taken from a real Prometheus equals what our own scrape at the same times stored."""

from __future__ import annotations

from pathlib import Path

from tests.collectors.prometheus.recorded import (
    INSTANCE,
    measured,
    night,
    read,
    scraped_by_us,
    stored_by_prometheus,
)
from tests.collectors.runner.engine import MemorySink
from tests.support.prometheus import need_prometheus, running

from specscope_collectors.sources.prometheus.job import Config


def test_every_scrape_is_stored_as_our_own_scrape_stores_it(tmp_path: Path) -> None:
    need_prometheus()
    scraped = night(3_600)
    ours, theirs = scraped_by_us(scraped), MemorySink()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="7h", raw="7h"))
    assert {batch.target.name for batch in theirs.batches} == {INSTANCE}
    own, other = measured(ours), measured(theirs)
    assert len(own) > 10_000
    assert own.keys() == other.keys()
    assert own == other
    assert len(theirs.launches()) == len(ours.launches()) >= 3
