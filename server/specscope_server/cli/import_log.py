"""Import of a log: the portions of its reader become batches of the store, each applied once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, tzinfo

import msgspec
from sqlalchemy import Engine, select

from specscope_collectors.logs.blocks import Unpacked
from specscope_collectors.logs.formats import FIRST, format_of
from specscope_collectors.logs.options import AnyLogReader, LogOptions, LogPortion
from specscope_collectors.observations import Batch, Target
from specscope_collectors.sources.sglang_log import SOURCE
from specscope_collectors.sources.sglang_log.report import report
from specscope_collectors.sources.sglang_log.services import ServiceLog
from specscope_server.cli.import_beginning import IDENTITY_BYTES, Beginning, beginning_of, known_as
from specscope_server.cli.import_pipe import GZIP, PipedLog, Readable, is_pipe, piped_portions
from specscope_server.cli.import_witness import StoredWitness
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.models import Server
from specscope_server.settings import Settings
from specscope_server.startup import opened_store
from specscope_server.store.ingest import Applied, IngestWriter
from specscope_server.store.limits import Limits

PREFIX = f"{SOURCE}:"
STANDARD_INPUT = "standard input"
IMPORTED = "imported log"
"""Base URL of a server that is known from its log alone."""
DAY_MS = 86_400_000


FORMAT_BYTES = 1024 * 1024
"""Of the beginning, in which it is looked for whose log it is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was read of a log."""

    first_ms: int | None
    found: bool
    words: tuple[str, ...]

    @classmethod
    def of(cls, reader: AnyLogReader) -> Outcome:
        """Return it of a reader that has come to the end."""
        return cls(reader.first_ms, reader.found, tuple(reader.report()))


@dataclass(frozen=True, slots=True)
class LogPart:
    """One file to read."""

    name: str
    open: Callable[[], Readable]
    moved: Callable[[int], None] = lambda count: None
    """Is told how much came through a pipe."""


@dataclass(slots=True)
class Stored:
    """What became of one file."""

    samples: int = 0
    duplicates: int = 0
    batches: int = 0
    repeated: int = 0
    left_out: int = 0
    """Values that the scrape of the server's metrics gave already."""
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
    service: str | None = None
    """The one to read of a log that Docker Compose wrote for several."""

    def reader(self, fingerprint: str, beginning: bytes) -> AnyLogReader:
        """Return a reader for a log that begins so; ``fingerprint`` names the launch of lines before the
        first that says what was started.
        """
        return format_of(beginning).reader(self.options(fingerprint))

    def options(self, fingerprint: str) -> LogOptions:
        """Return what the reader must be told."""
        return LogOptions(
            server=self.server, fingerprint=fingerprint, zone=self.zone, date=self.day, year=self.year
        )

    @property
    def told(self) -> bytes:
        """Part of a log's identity: read in another zone it is another one."""
        service = f"{self.service}\0" if self.service else ""
        return f"{self.server}\0{self.zone}\0{self.day}\0{self.year}\0{service}".encode()

    def collector_id(self, beginning: bytes) -> str:
        """Return the identity under which a file is imported."""
        return f"{PREFIX}{hashlib.sha256(self.told + beginning).hexdigest()[:40]}"

    def identity(self, engine: Engine, writer: IngestWriter, beginning: bytes) -> tuple[str, Beginning]:
        """Return under which collector id a log is stored, and what is remembered of it."""
        collector_id, now = self.collector_id(beginning), beginning_of(self.told, beginning)
        if writer.resume(collector_id).sequence:
            return collector_id, now
        before = known_as(engine, PREFIX, now, beginning)
        if before is None:
            return collector_id, now
        return before[0], msgspec.structs.replace(now, fingerprint=before[1].fingerprint)

    def store(
        self, parts: list[LogPart], settings: Settings, clock: Clock = system_clock
    ) -> tuple[Outcome, list[str]]:
        """Store the log; return its summary and what became of each file, in words."""
        with opened_store(settings) as engine:
            # No limit of age: what is older than the retention of raw samples is kept as summaries.
            limits = Limits(max_series_per_launch=settings.max_series_per_target, max_age_ms=None)
            writer = IngestWriter(engine, clock, limits)
            target = Target(name=self.server, base_url=base_url(engine, self.server))
            storing = Storing(engine, writer, target)
            if [part.name for part in parts] == [STANDARD_INPUT] and is_pipe(parts[0].open()):
                summary = self._store_pipe(parts[0], storing, clock)
            else:
                summary = self._store(parts, storing)
            return summary, [*storing.outcome, *_aged(summary, settings.retention_raw_days, clock())]

    def _store_pipe(self, part: LogPart, storing: Storing, clock: Clock) -> Outcome:
        """Store what comes, as it comes."""
        stream = part.open()
        log = PipedLog(stream, self.service, part.moved)
        beginning = log.beginning()
        if beginning.startswith(GZIP) or format_of(beginning).source != FIRST:
            return self._store([LogPart(STANDARD_INPUT, lambda: log.whole(stream))], storing)
        fingerprint = hashlib.sha256(beginning).hexdigest()
        summary, portions = piped_portions(log, self.options(fingerprint), clock)
        storing.add_live(portions, f"{PREFIX}pipe:{hashlib.sha256(self.told).hexdigest()[:40]}")
        return Outcome(summary.first_ms, bool(summary.launches), tuple(report(summary)))

    def _store(self, parts: list[LogPart], storing: Storing) -> Outcome:
        reader = None
        for part, log, beginning in opened(parts, self.service):
            collector_id, remembered = self.identity(storing.engine, storing.writer, beginning)
            reader = reader or self.reader(remembered.fingerprint, log.peek(FORMAT_BYTES))
            done_to = storing.writer.resume(collector_id).sequence
            portions = reader.read(log, done_to=done_to)
            storing.add(part.name, portions, collector_id, msgspec.msgpack.encode(remembered), done_to)
        assert reader is not None
        return Outcome.of(reader)


@dataclass(slots=True)
class Storing:
    """Puts portions into the store, and keeps account of it."""

    engine: Engine
    writer: IngestWriter
    target: Target
    outcome: list[str] = field(default_factory=list)
    witness: StoredWitness = field(init=False)

    def __post_init__(self) -> None:
        self.witness = StoredWitness(self.engine, self.target.name)

    def add(
        self, name: str, portions: Iterator[LogPortion], collector_id: str, checkpoint: bytes, done_to: int
    ) -> None:
        """Store what is new of one file."""
        stored = Stored()
        for portion in portions:
            if portion.end <= done_to:
                self.witness.note(portion.records)
                stored.add(Applied(applied=False))
                continue
            stored.add(self.apply(portion, collector_id, portion.end, checkpoint, stored))
        self.outcome += told(name, stored)

    def add_live(self, portions: Iterator[LogPortion], collector_id: str) -> None:
        """Store portions of a piped log; another process may do the same for this server."""
        stored = Stored()
        sequence = self.writer.resume(collector_id).sequence
        try:
            for portion in portions:
                sequence += 1
                while not (applied := self.apply(portion, collector_id, sequence, None, stored)).applied:
                    sequence = self.writer.resume(collector_id).sequence + 1
                stored.add(applied)
        except KeyboardInterrupt:
            self.outcome.append("stopped   by the keyboard; what had come before is stored")
        self.outcome += told(STANDARD_INPUT, stored)

    def apply(
        self, portion: LogPortion, collector_id: str, sequence: int, checkpoint: bytes | None, stored: Stored
    ) -> Applied:
        """Store one portion, as far as the store does not have it from the server itself."""
        rest = self.witness.rest(portion.launch_key, portion.observations)
        stored.left_out += rest.left_out
        return self.writer.apply_counted(
            Batch(
                collector_id=collector_id,
                sequence=sequence,
                target=self.target,
                launch_key=rest.launch_key,
                observations=rest.observations,
                checkpoint=checkpoint,
            )
        )


def _aged(summary: Outcome, raw_days: float, now_ms: int) -> list[str]:
    if summary.first_ms is None or summary.first_ms >= now_ms - raw_days * DAY_MS:
        return []
    return [
        f"note      single values older than {raw_days:g} days are removed by retention; "
        "summaries of 1 minute and more stay"
    ]


def opened(parts: list[LogPart], service: str | None = None) -> Iterator[tuple[LogPart, Unpacked, bytes]]:
    """Yield each part, decompressed, with its beginning; close it afterwards.

    Reading raises `SeveralServicesError` where several servers have written and none is chosen.
    """
    for part in parts:
        stream = part.open()
        try:
            log = ServiceLog(stream, service)
            yield part, log, log.peek(IDENTITY_BYTES)
        finally:
            stream.close()


def dry_portions(job: LogImport, parts: list[LogPart]) -> tuple[AnyLogReader, Iterator[LogPortion]]:
    """Return the reader (its summary is complete at the end) and all portions."""
    files = opened(parts, job.service)
    _, log, beginning = next(files)
    reader = job.reader(beginning_of(job.told, beginning).fingerprint, log.peek(FORMAT_BYTES))

    def portions() -> Iterator[LogPortion]:
        yield from reader.read(log)
        for _, more, _ in files:
            yield from reader.read(more)

    return reader, portions()


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
    left = (
        [f"left out  {stored.left_out} values: the server's metrics were scraped, which stand"]
        if stored.left_out
        else []
    )
    more = f", {stored.duplicates} were there already" if stored.duplicates else ""
    lines = [f"stored    {name}: {stored.samples} values{more}"]
    return [*lines, *left] + [
        f"refused   {count} × {reason} (by the store)" for reason, count in stored.refused.items()
    ]
