"""The store as a sink that counts: what was stored, what was refused and why, and how each scrape went."""

from __future__ import annotations

from specscope_collectors.observations import Batch, Resume, SourceHealth
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.store.ingest import IngestWriter


class MeteredSink:
    """A `Sink` over an `IngestWriter` whose outcomes appear in the product's own metrics."""

    def __init__(self, writer: IngestWriter, telemetry: Telemetry) -> None:
        self._writer = writer
        self._telemetry = telemetry

    def resume(self, collector_id: str) -> Resume:
        """Return where the collector left off."""
        return self._writer.resume(collector_id)

    def apply(self, batch: Batch) -> bool:
        """Store the batch; raise, and count a failure, when it was not stored. False: applied before."""
        counters = self._telemetry
        try:
            applied = self._writer.apply_counted(batch)
        except Exception:
            counters.batches.labels("failed").inc()
            raise
        counters.batches.labels("applied" if applied.applied else "repeated").inc()
        counters.samples.labels("scalar").inc(applied.samples)
        counters.samples.labels("distribution").inc(applied.distributions)
        for reason, count in applied.refused.items():
            counters.refused.labels(str(reason)).inc(count)
        if applied.applied:
            self._count_scrapes(batch)
        return applied.applied

    def _count_scrapes(self, batch: Batch) -> None:
        for record in batch.observations:
            if isinstance(record, SourceHealth):
                self._telemetry.scrapes.labels(record.source, record.state.value).inc()
