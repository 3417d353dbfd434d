"""The store as a sink that counts: what was stored, what was refused and why, and how each scrape went.

Collectors in this process and collectors that push go through the same `MeteredSink`.
"""

from __future__ import annotations

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import DataError, InterfaceError, InternalError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from specscope_collectors.observations import Batch, Resume, SourceHealth
from specscope_server.ingest.decoding import Batches
from specscope_server.ingest.schemas import BatchItem, Receipt
from specscope_server.ingest.sharing import Sharing
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.kit.errors import InvalidInput, SpecscopeError, Unavailable
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.store.ingest import Applied, IngestWriter
from specscope_server.store.limits import Limits

MOST_SOURCES = 64
"""Sources counted under their own name; whoever pushes chooses the names."""
DAY_MS = 86_400_000
log = structlog.get_logger(__name__)


class MeteredSink:
    """A `Sink` over an `IngestWriter` whose outcomes appear in the product's own metrics."""

    def __init__(self, writer: IngestWriter, telemetry: Telemetry) -> None:
        self._writer = writer
        self._telemetry = telemetry
        self._sources: set[str] = set()

    def resume(self, collector_id: str) -> Resume:
        """Return where the collector left off."""
        return self._writer.resume(collector_id)

    def apply(self, batch: Batch) -> bool:
        """Store the batch; raise, and count a failure, when it was not stored. False: applied before."""
        return self.apply_counted(batch).applied

    def apply_counted(self, batch: Batch) -> Applied:
        """Like `apply`, and say what was stored and what was refused."""
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
        return applied

    def _count_scrapes(self, batch: Batch) -> None:
        for record in batch.observations:
            if isinstance(record, SourceHealth):
                if len(self._sources) < MOST_SOURCES:
                    self._sources.add(record.source)
                source = record.source if record.source in self._sources else "(other)"
                self._telemetry.scrapes.labels(source, record.state.value).inc()


def make_sink(
    engine: Engine, telemetry: Telemetry, retention_raw_days: float, clock: Clock = system_clock
) -> MeteredSink:
    """Return the one sink of a process: it is safe to share, and its writer remembers series."""
    limits = Limits(max_age_ms=int(retention_raw_days * DAY_MS))
    return MeteredSink(IngestWriter(engine, clock, limits), telemetry)


def take_in(sink: MeteredSink, sharing: Sharing, batches: Batches) -> Receipt:
    """Apply batch after batch in the order sent, each as a whole, and say what became of each.

    The first that cannot be applied ends it, with the place of the batch in the problem's ``errors``: all
    before it are applied. Raises `InvalidInput` when sending it again would fail again, `Unavailable` or what
    the database raises when trying later may help, and `Failed` for what nobody expected.
    """
    items = []
    for place in range(len(batches)):
        batch = batches.decode(place)
        items.append(_item(batch, _apply(sink, place, batch), sink, sharing))
    return Receipt(
        applied=sum(item.outcome == "applied" for item in items),
        repeated=sum(item.outcome == "repeated" for item in items),
        batches=items,
    )


class Failed(SpecscopeError):
    """A batch made the server fail: its log has the reason."""


def _apply(sink: MeteredSink, place: int, batch: Batch) -> Applied:
    location = f"batches.{place}"
    shown = f"{batch.collector_id[:120]} sequence {batch.sequence}"
    try:
        return sink.apply_counted(batch)
    except InvalidInput as error:
        reason = error.detail
    except DataError:
        reason = "it holds what no database can hold (a NUL character, a number over 64 bits)"
    except (OperationalError, InterfaceError):
        raise
    except PoolTimeout:
        raise Unavailable("all connections to the database are in use; try again") from None
    except (ProgrammingError, InternalError) as error:  # tables are missing or damaged: not the batch's fault
        log.error("store_failed", exc_info=error)
        raise Unavailable("the database cannot be written now; see /readyz and the server's log") from error
    except Exception as error:
        log.error("batch_failed", collector=batch.collector_id, sequence=batch.sequence, exc_info=error)
        detail = f"{location} ({shown}) made the server fail; its log has the details"
        raise Failed(detail, [{"location": location, "reason": "unexpected", "input": shown}]) from error
    item = {"location": location, "reason": reason, "input": shown}
    raise InvalidInput(f"{location} ({shown}) cannot be applied: {reason}", [item]) from None


def _item(batch: Batch, applied: Applied, sink: MeteredSink, sharing: Sharing) -> BatchItem:
    repeated_up_to = None if applied.applied else sink.resume(batch.collector_id).sequence
    return BatchItem(
        collector_id=batch.collector_id,
        sequence=batch.sequence,
        outcome="applied" if applied.applied else "repeated",
        samples=applied.samples,
        distributions=applied.distributions,
        refused={str(reason): count for reason, count in applied.refused.items()},
        applied_up_to=repeated_up_to,
        also_collected_by=sharing.others(batch.collector_id),
    )
