"""`specscope import`: take in what was written down earlier, such as the log of yesterday's night."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy.exc import DBAPIError

from specscope_collectors.sources.sglang_log.printing import as_json, as_ndjson, as_text
from specscope_collectors.sources.sglang_log.services import SeveralServicesError
from specscope_server.cli.import_arguments import DryRun, Timezone, name_of, zone_of
from specscope_server.cli.import_log import STANDARD_INPUT, LogImport, LogPart, Outcome, dry_portions
from specscope_server.cli.import_prometheus import prometheus
from specscope_server.cli.import_requests import requests
from specscope_server.cli.import_trace import trace
from specscope_server.cli.options import Database
from specscope_server.cli.progress import ReadingBar
from specscope_server.kit.errors import InvalidInput, SpecscopeError
from specscope_server.logging import configure_logging
from specscope_server.settings import load_settings

USAGE_ERROR, FAILURE = 2, 1
STDIN = "-"

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Take in what was written down earlier.",
    pretty_exceptions_enable=False,
)


class Format(StrEnum):
    """How `--dry-run` prints observations."""

    NDJSON = "ndjson"
    JSON = "json"
    TEXT = "text"


PRINTERS = {Format.NDJSON: as_ndjson, Format.JSON: as_json, Format.TEXT: as_text}

ARCHIVES = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"\xfd7zXZ": ("xz", "xzcat"),
    b"BZh": ("bzip2", "bzcat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
"""First bytes of a file → what made it, and what reads it."""

UNNAMED = "log"
"""The server's name where nothing is stored."""

Server = Annotated[
    str | None, typer.Option(help="Name under which the server is shown; --dry-run needs none.")
]
Files = Annotated[
    list[str],
    typer.Argument(
        help="Log files of one server, oldest first; gzip is recognised; `-` reads standard input."
    ),
]
Date = Annotated[
    str | None, typer.Option("--date", help="Day (YYYY-MM-DD) of the first line, for times without a date.")
]
Year = Annotated[
    int | None,
    typer.Option(min=2015, max=9998, help="Year of the first line, for dates without one (journald)."),
]
Service = Annotated[
    str | None,
    typer.Option(help="Service to read of a log that Docker Compose wrote for several (`NAME  | …`)."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="How --dry-run prints them.")]


@app.callback()
def group() -> None:
    """Take in what was written down earlier."""


app.command()(requests)
app.command()(prometheus)
app.command()(trace)


@app.command()
def log(
    files: Files,
    server: Server = None,
    timezone: Timezone = "UTC",
    day: Date = None,
    year: Year = None,
    service: Service = None,
    database: Database = None,
    dry_run: DryRun = False,
    output: OutputFormat = Format.NDJSON,
) -> None:
    """Import logs of SGLang or vLLM; what comes through a pipe (`-`) is stored as it comes. Exit status:
    0 read, 1 nothing usable or not stored, 2 wrong usage.
    """
    bar = ReadingBar(
        (None if name == STDIN else Path(name) for name in files),
        is_shown=not (dry_run and sys.stdout.isatty()),
    )
    try:
        parts = list(_parts(files, bar))
        job = LogImport(_named(server, dry_run), zone_of(timezone), _date(day), year, service)
    except InvalidInput as error:
        typer.echo(f"specscope import log: {error.detail}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    try:
        with bar:
            read, outcome = _print(job, parts, output) if dry_run else _store(job, parts, database)
    except SeveralServicesError as error:
        typer.echo(f"specscope import log: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    zone = f"zone      times without a zone are read as {timezone}"
    for line in (*outcome, zone, *read.words):
        typer.echo(line, err=True)
    if not read.found:
        for hint in _packed(files):
            typer.echo(f"specscope import log: {hint}", err=True)
        typer.echo(
            "specscope import log: no Decode or Prefill line, no event and no server_args with a time in it, "
            "and no line of vLLM; is this the log of an SGLang scheduler (stderr) or of vLLM? Times without "
            "a date need --date, those without a year (vLLM's) --year",
            err=True,
        )
        raise typer.Exit(FAILURE)


def main(argv: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        app(argv, prog_name="specscope import")
    except SpecscopeError as error:
        typer.echo(f"specscope import: {error.detail}", err=True)
        return FAILURE
    except DBAPIError as error:
        typer.echo(f"specscope import: the database failed: {error.orig}; run the same again", err=True)
        return FAILURE
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _store(job: LogImport, parts: list[LogPart], database: str | None) -> tuple[Outcome, list[str]]:
    settings = load_settings({"database": database})
    configure_logging(settings.log_format, "warning")
    return job.store(parts, settings)


def _print(job: LogImport, parts: list[LogPart], output: Format) -> tuple[Outcome, list[str]]:
    reader, portions = dry_portions(job, parts)
    observations = chain.from_iterable(portion.observations for portion in portions)
    out = sys.stdout.buffer
    try:
        for piece in PRINTERS[output](observations):
            out.write(piece)
        out.flush()
    except BrokenPipeError:  # `| head`: who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Outcome.of(reader), []


def _parts(files: list[str], bar: ReadingBar) -> Iterator[LogPart]:
    """Yield what to read; that each can be opened is known before anything is stored."""
    for name in files:
        if name == STDIN:
            yield LogPart(STANDARD_INPUT, lambda: bar.watch(sys.stdin.buffer), bar.moved)
            continue
        try:
            Path(name).open("rb").close()
        except OSError as error:
            raise InvalidInput(f"{name} cannot be read: {error.strerror}; name a log file, or -") from None
        yield LogPart(name, partial(bar.open, Path(name)))


def _packed(files: list[str]) -> Iterator[str]:
    """Yield what to do about files that must be unpacked first."""
    for path in (Path(name) for name in files if name != STDIN):
        if not path.is_file():
            continue
        with path.open("rb") as file:
            head = file.read(6)
        for mark, (name, command) in ARCHIVES.items():
            if head.startswith(mark):
                yield f"{path} is compressed with {name}; pipe it: {command} … | specscope import log - …"


def _named(server: str | None, dry_run: bool) -> str:
    if server is None and not dry_run:
        raise InvalidInput(
            "--server is missing; name the server whose log it is, or look first: --dry-run --format text"
        )
    return name_of(UNNAMED if server is None else server)


def _date(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"--date {text}: not a day; write YYYY-MM-DD") from None
