"""Import of a log: the portions of its reader become batches of the store, each applied once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, tzinfo
from typing import BinaryIO

from sqlalchemy import Engine, select

from specscope_collectors.observations import Batch, Target
from specscope_collectors.sources.sglang_log import SOURCE, LogOptions, LogReader, Portion, Summary, Unpacked
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.models import Server
from specscope_server.settings import Settings
from specscope_server.startup import prepare_store
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import Applied, IngestWriter
from specscope_server.store.limits import Limits

IDENTITY_BYTES = 16_384
"""A file is known again by its beginning, so that it may have grown, or been compressed, since."""
LAUNCH_BYTES = 1_024
IMPORTED = "imported log"
"""Base URL of a server that is known from its log alone."""
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class LogPart:
    """One file to read."""

    name: str
    open: Callable[[], BinaryIO]


@dataclass(slots=True)
class Stored:
    """What became of one file."""

    samples: int = 0
    duplicates: int = 0
    batches: int = 0
    repeated: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, applied: Applied) -> None:
        """Count one batch."""
        self.batches += applied.applied
        self.repeated += not applied.applied
        self.samples += applied.samples
        self.duplicates += applied.duplicates
        self.refused.update({str(reason): count for reason, count in applied.refused.items()})


@dataclass(frozen=True, slots=True)
class LogImport:
    """What the user says about the log."""

    server: str
    zone: tzinfo
    day: date | None = None
    year: int | None = None

    def reader(self, beginning: bytes) -> LogReader:
        """Return a reader for the log whose first part begins so."""
        fingerprint = hashlib.sha256(beginning[:LAUNCH_BYTES]).hexdigest()
        return LogReader(
            LogOptions(
                server=self.server, fingerprint=fingerprint, zone=self.zone, date=self.day, year=self.year
            )
        )

    def collector_id(self, beginning: bytes) -> str:
        """Return the identity under which a file is imported: read in another zone it is another one."""
        told = f"{self.server}\0{self.zone}\0{self.day}\0{self.year}\0".encode()
        return f"{SOURCE}:{hashlib.sha256(told + beginning).hexdigest()[:40]}"

    def store(
        self, parts: list[LogPart], settings: Settings, clock: Clock = system_clock
    ) -> tuple[Summary, list[str]]:
        """Store the log; return its summary and what became of each file, in words."""
        engine = create_store_engine(settings.database)
        try:
            prepare_store(engine, settings)
            # No limit of age: what is older than the retention of raw samples is kept as summaries.
            limits = Limits(max_series_per_launch=settings.max_series_per_target, max_age_ms=None)
            writer = IngestWriter(engine, clock, limits)
            target = Target(name=self.server, base_url=base_url(engine, self.server))
            return self._store(parts, writer, target, settings.retention_raw_days, clock())
        finally:
            engine.dispose()

    def _store(
        self, parts: list[LogPart], writer: IngestWriter, target: Target, raw_days: float, now_ms: int
    ) -> tuple[Summary, list[str]]:
        reader, outcome = None, []
        for part, log, beginning in opened(parts):
            reader = reader or self.reader(beginning)
            collector_id = self.collector_id(beginning)
            done_to = writer.resume(collector_id).sequence
            stored = Stored()
            for portion in reader.read(log, done_to=done_to):
                stored.add(
                    writer.apply_counted(batch(portion, collector_id, target))
                    if portion.end > done_to
                    else Applied(applied=False)
                )
            outcome += told(part.name, stored)
        assert reader is not None
        first_ms = reader.summary.first_ms
        if first_ms is not None and first_ms < now_ms - raw_days * DAY_MS:
            outcome.append(
                f"note      single values older than {raw_days:g} days are removed by retention; "
                "summaries of 1 minute and more stay"
            )
        return reader.summary, outcome


def opened(parts: list[LogPart]) -> Iterator[tuple[LogPart, Unpacked, bytes]]:
    """Yield each part, decompressed, with its beginning; close it afterwards."""
    for part in parts:
        with closing(part.open()) as stream:
            log = Unpacked(stream)
            yield part, log, log.peek(IDENTITY_BYTES)


def dry_portions(job: LogImport, parts: list[LogPart]) -> tuple[LogReader, Iterator[Portion]]:
    """Return the reader (its summary is complete at the end) and all portions."""
    files = opened(parts)
    _, log, beginning = next(files)
    reader = job.reader(beginning)

    def portions() -> Iterator[Portion]:
        yield from reader.read(log)
        for _, more, _ in files:
            yield from reader.read(more)

    return reader, portions()


def batch(portion: Portion, collector_id: str, target: Target) -> Batch:
    """Return the batch of a portion; its sequence is how far into the file it reaches."""
    return Batch(
        collector_id=collector_id,
        sequence=portion.end,
        target=target,
        launch_key=portion.launch_key,
        observations=portion.observations,
    )


def base_url(engine: Engine, server: str) -> str:
    """Return the server's address if it is known already: an import must not change it."""
    with engine.connect() as connection:
        found = connection.execute(select(Server.base_url).where(Server.name == server)).scalar_one_or_none()
    return found or IMPORTED


def told(name: str, stored: Stored) -> list[str]:
    """Say what became of one file."""
    if not stored.batches:
        why = "it was imported before: nothing changed" if stored.repeated else "nothing to store in it"
        return [f"stored    {name}: {why}"]
    more = f", {stored.duplicates} were there already" if stored.duplicates else ""
    lines = [f"stored    {name}: {stored.samples} values{more}"]
    return lines + [
        f"refused   {count} × {reason} (by the store)" for reason, count in stored.refused.items()
    ]
