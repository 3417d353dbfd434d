"""`specscope import requests`: what SGLang wrote of each request with `--export-metrics-to-file`."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import tzinfo
from enum import StrEnum
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer

from specscope_collectors.sources.requests.export import hour_of
from specscope_server.cli.import_arguments import DryRun, Server, Timezone, name_of, zone_of
from specscope_server.cli.options import Database
from specscope_server.cli.progress import ReadingBar, opened
from specscope_server.kit.clock import system_clock
from specscope_server.kit.errors import InvalidInput
from specscope_server.logging import configure_logging
from specscope_server.requests.receiving import Read, lines_of, read, store
from specscope_server.requests.schemas import Refused
from specscope_server.settings import Settings, load_settings
from specscope_server.startup import opened_store
from specscope_server.store.limits import Limits

USAGE_ERROR, FAILURE = 2, 1
MAX_LINE_BYTES = 4_194_304
"""Longest line that is read: the request's parameters may hold a long prompt. Longer ones are refused."""
AT_ONCE = 1_000
"""Requests stored in one transaction."""
NO_TIME = 0
REASONS_SHOWN = 8
PLACE = re.compile(r": line \d+ column \d+ \(char \d+\)")
"""Where in a line something is wrong: no reason of its own."""
DAY_MS = 86_400_000


class Format(StrEnum):
    """How `--dry-run` prints records."""

    NDJSON = "ndjson"


Files = Annotated[
    list[Path], typer.Argument(help="Files of one server, one JSON object a line; gzip is recognised.")
]
OutputFormat = Annotated[Format, typer.Option("--format", help="How --dry-run prints them.")]


class Outcome:
    """What became of all lines so far."""

    def __init__(self) -> None:
        self.open: Callable[[Path], BufferedReader] = opened
        """How files are opened: a bar may count what is read of them."""
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def refuse(self, refused: list[Refused]) -> None:
        """Count refused lines by reason."""
        self.counts["refused"] += len(refused)
        self.reasons.update(PLACE.sub("", each.reason) for each in refused)

    def lines(self) -> Iterator[str]:
        """Yield it in words."""
        names = ("stored", "already there", "read", "refused", "health checks")
        parts = [f"{self.counts[name]} {name}" for name in names if self.counts[name]]
        yield f"requests  {', '.join(parts) or 'none'}"
        if self.counts["hour only"]:
            yield (
                f"note      {self.counts['hour only']} do not say when they finished (the engine ran without "
                "--enable-metrics): the hour in the name of their file is taken"
            )
        for reason, count in self.reasons.most_common(REASONS_SHOWN):
            yield f"refused   {count} × {reason}"
        if self.counts["refused"] and not self.is_usable():
            yield "remedy    give files of SGLang's --export-metrics-to-file: one JSON object a line"

    def is_usable(self) -> bool:
        """Tell whether any request was read, now or earlier."""
        return any(self.counts[word] for word in ("read", "stored", "already there"))


def requests(
    files: Files,
    server: Server,
    timezone: Timezone = "UTC",
    database: Database = None,
    dry_run: DryRun = False,
    output: OutputFormat = Format.NDJSON,
) -> None:
    """Import counts of single requests that SGLang exported (--export-metrics-to-file); texts are not kept.
    Doing it again changes nothing. Exit status: 0 read, 1 nothing usable or not stored, 2 wrong usage.
    """
    try:
        name, zone = name_of(server), zone_of(timezone)
        _check_readable(files)
    except InvalidInput as error:
        typer.echo(f"specscope import requests: {error.detail}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    outcome = Outcome()
    with ReadingBar(files, is_shown=not (dry_run and sys.stdout.isatty())) as bar:
        outcome.open = bar.open
        if dry_run:
            _print(files, zone, outcome)
        else:
            settings = load_settings({"database": database})
            configure_logging(settings.log_format, "error")  # what was refused is said below
            _store(files, zone, name, settings, outcome)
    for line in outcome.lines():
        typer.echo(line, err=True)
    if not outcome.is_usable():
        raise typer.Exit(FAILURE)


def _check_readable(files: list[Path]) -> None:
    for path in files:
        try:
            path.open("rb").close()
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}; name an exported file") from None


def _print(files: list[Path], zone: tzinfo, outcome: Outcome) -> None:
    encode = msgspec.json.Encoder().encode
    for found in portions(files, zone, outcome):
        outcome.refuse(found.refused)
        outcome.counts["read"] += len(found.records)
        for record in found.records:
            sys.stdout.buffer.write(encode(record) + b"\n")
    sys.stdout.buffer.flush()


def _store(files: list[Path], zone: tzinfo, server: str, settings: Settings, outcome: Outcome) -> None:
    with opened_store(settings) as engine:
        now_ms = system_clock()
        oldest_ms = Limits(max_age_ms=int(settings.retention_requests_days * DAY_MS)).oldest_ms(now_ms)
        for found in portions(files, zone, outcome):
            receipt = store(engine, server, found, now_ms, oldest_ms)
            outcome.counts["stored"] += receipt.accepted
            outcome.counts["already there"] += receipt.duplicates
            outcome.refuse(receipt.refused)
            # The receipt names the first refusals only.
            outcome.counts["refused"] += receipt.refused_total - len(receipt.refused)


def portions(files: list[Path], zone: tzinfo, outcome: Outcome) -> Iterator[Read]:
    """Yield the records of all files in portions; what is left out is counted in ``outcome``."""
    for path in files:
        hour_ms = hour_of(path.name, zone)
        items = lines_of(_lines(path, outcome))
        while part := list(islice(items, AT_ONCE)):
            found = read(iter(part), {}, NO_TIME)
            outcome.counts["health checks"] += found.health_checks
            yield _timed(found, hour_ms, outcome)


def _timed(found: Read, hour_ms: int | None, outcome: Outcome) -> Read:
    """Give records without a time the hour of their file, or refuse them."""
    timed = Read(refused=list(found.refused))
    for record, place in zip(found.records, found.places, strict=True):
        if record.time_ms == NO_TIME and hour_ms is None:
            reason = "it does not say when it finished, nor does the name of its file (…_YYYYMMDD_HH.log)"
            timed.refused.append(Refused(index=place, reason=reason))
            continue
        outcome.counts["hour only"] += record.time_ms == NO_TIME
        moment = hour_ms if record.time_ms == NO_TIME and hour_ms is not None else record.time_ms
        timed.records.append(msgspec.structs.replace(record, time_ms=moment))
        timed.places.append(place)
    return timed


def _lines(path: Path, outcome: Outcome) -> Iterator[bytes]:
    """Yield lines of a file; a damaged end and lines that are too long are counted, the rest is read."""
    with outcome.open(path) as raw:
        is_gzip = raw.peek(2)[:2] == b"\x1f\x8b"
        stream: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
        try:
            yield from _bounded(stream, outcome)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            outcome.refuse([Refused(index=0, reason=f"{path.name} is damaged from some point on: {error}")])


def _bounded(stream: BinaryIO, outcome: Outcome) -> Iterator[bytes]:
    while line := stream.readline(MAX_LINE_BYTES + 1):
        if len(line) <= MAX_LINE_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)
        outcome.refuse([Refused(index=0, reason=f"the line is over {MAX_LINE_BYTES} bytes")])
