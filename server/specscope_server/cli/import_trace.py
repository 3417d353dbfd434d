"""`specscope import trace`: profiler traces, reduced to where the time of each phase went."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated

import orjson
import typer

from specscope_collectors.observations import TraceSummary
from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.opening import CaptureFiles, captures
from specscope_collectors.traces.printing import as_document, as_lines
from specscope_server.cli.import_arguments import DryRun, Server, name_of
from specscope_server.cli.options import Database
from specscope_server.cli.progress import ReadingBar
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.kit.errors import InvalidInput
from specscope_server.logging import configure_logging
from specscope_server.settings import Settings, load_settings
from specscope_server.startup import opened_store
from specscope_server.traces import receiving
from specscope_server.traces.receiving import Told

USAGE_ERROR, FAILURE = 2, 1


class Format(StrEnum):
    """How `--dry-run` prints summaries."""

    TEXT = "text"
    JSON = "json"


Files = Annotated[
    list[Path],
    typer.Argument(
        help="Traces of one or several captures (*.json, *.json.gz), one for each rank or merged; or folders."
    ),
]
Name = Annotated[str | None, typer.Option(help="What to call the capture; without it, by its files.")]
Note = Annotated[str, typer.Option(help="What was different, in your words.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="How --dry-run prints them.")]


def trace(
    files: Files,
    server: Server,
    name: Name = None,
    note: Note = "",
    database: Database = None,
    dry_run: DryRun = False,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Import profiler traces of SGLang (Kineto or Chrome traces). Exit status: 0 all were read, 1 one could
    not be used or stored, 2 wrong usage.
    """
    try:
        told = Told(name_of(server), name, note)
        found = captures(files)
    except (InvalidInput, TraceError, OSError) as error:
        fail(error, USAGE_ERROR)
    paths = [path for each in found for path in each.paths]
    bar = ReadingBar(paths, is_shown=not (dry_run and sys.stdout.isatty()))
    with bar:
        failed = _print(found, told, bar, output) if dry_run else _store(found, told, bar, database)
    if failed:
        raise typer.Exit(FAILURE)


def fail(error: Exception, status: int) -> None:
    """Say what is wrong and end."""
    typer.echo(f"specscope import trace: {words_of(error)}", err=True)
    raise typer.Exit(status) from None


def words_of(error: Exception) -> str:
    """Return an error in words."""
    if isinstance(error, InvalidInput):
        return error.detail
    if isinstance(error, OSError):
        return f"{error.filename} cannot be read: {error.strerror}; name a trace or a folder"
    return str(error)


def _reduced(
    found: list[CaptureFiles], told: Told, bar: ReadingBar, clock: Clock
) -> Iterator[tuple[CaptureFiles, TraceSummary | Exception]]:
    """Yield what each capture says, or why it says nothing: one bad capture does not end the others."""

    def opened(path: Path) -> IO[bytes]:
        return bar.open(path)

    for each in found:
        try:
            yield each, receiving.reduce_files(each, told, clock(), opened, Bounds())
        except (TraceError, OSError) as error:
            yield each, error


def _print(found: list[CaptureFiles], told: Told, bar: ReadingBar, output: Format) -> int:
    documents, failed = [], 0
    for _, outcome in _reduced(found, told, bar, system_clock):
        if isinstance(outcome, Exception):
            failed += 1
            typer.echo(f"specscope import trace: {words_of(outcome)}", err=True)
        elif output is Format.TEXT:
            typer.echo("\n".join(as_lines(outcome)))
        else:
            documents.append(as_document(outcome))
    if output is Format.JSON:
        sys.stdout.buffer.write(
            orjson.dumps(documents, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
        )
        sys.stdout.buffer.flush()
    return failed


def _store(found: list[CaptureFiles], told: Told, bar: ReadingBar, database: str | None) -> int:
    settings = load_settings({"database": database})
    configure_logging(settings.log_format, "warning")
    return store_captures(found, told, bar, settings)


def store_captures(
    found: list[CaptureFiles], told: Told, bar: ReadingBar, settings: Settings, clock: Clock = system_clock
) -> int:
    """Store captures, say what became of each, and return how many failed."""
    failed = 0
    with opened_store(settings) as engine:
        for files, outcome in _reduced(found, told, bar, clock):
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                trace_id, is_new = receiving.store(engine, told, outcome, clock())
            except (TraceError, OSError, InvalidInput) as error:
                failed += 1
                typer.echo(f"specscope import trace: {words_of(error)}", err=True)
                continue
            receiving.keep_files(settings, outcome, files)
            for line in as_lines(outcome):
                typer.echo(line, err=True)
            became = f"trace {trace_id}" if is_new else f"it was there already, as trace {trace_id}"
            typer.echo(f"stored    {outcome.name}: {became}", err=True)
    return failed
