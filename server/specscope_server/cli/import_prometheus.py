"""`specscope import prometheus`: what a Prometheus-compatible API already holds of an engine's past."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from specscope_collectors.observations import Batch, Resume
from specscope_collectors.sources.prometheus.api import ApiProblem
from specscope_collectors.sources.prometheus.connection import ApiConfigError, api_url
from specscope_collectors.sources.prometheus.durations import moment_ms
from specscope_collectors.sources.prometheus.replay import Tally
from specscope_collectors.sources.prometheus.segment import SharedError
from specscope_collectors.sources.prometheus.settings import Config
from specscope_collectors.sources.sglang_log.printing import as_ndjson
from specscope_collectors.sources.sglang_log.report import plain
from specscope_server.cli.import_arguments import DryRun
from specscope_server.cli.options import Database
from specscope_server.cli.prometheus_history import Asked, CountingSink, HistoryImport, Outcome
from specscope_server.kit.clock import system_clock
from specscope_server.logging import configure_logging
from specscope_server.settings import Settings, load_settings
from specscope_server.startup import opened_store
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.limits import Limits

USAGE_ERROR, FAILURE, STOPPED = 2, 1, 130
LAG = "30s"
MAX_LISTED = 50

Url = Annotated[str, typer.Argument(metavar="URL", help="In front of /api/v1, e.g. http://prometheus:9090.")]
Since = Annotated[str, typer.Option(help="From when: how long ago (30d, 12h) or a time (2026-11-01T00:00Z).")]
Until = Annotated[str | None, typer.Option(help="Up to when; written as --since. Without it: now.")]
Match = Annotated[
    list[str] | None, typer.Option(help="Further label matcher, e.g. 'cluster=\"a\"'; may be repeated.")
]
OnlyServer = Annotated[
    list[str] | None,
    typer.Option("--server", help="Only this server: a value of --server-label; may be repeated."),
]
ServerLabel = Annotated[str, typer.Option(help="Label that tells servers apart.")]
ServerName = Annotated[str, typer.Option(help="Name under which a server is shown; {value} is the label's.")]
Raw = Annotated[str, typer.Option(help="Age up to which every scrape is read; what is older, every --step.")]
Step = Annotated[str, typer.Option(help="Grid on which the older past is read.")]
TokenEnv = Annotated[str | None, typer.Option(help="Environment variable that holds a bearer token.")]
TokenFile = Annotated[str | None, typer.Option(help="File that holds a bearer token.")]
User = Annotated[str | None, typer.Option(help="User for basic authentication.")]
PasswordEnv = Annotated[str | None, typer.Option(help="Environment variable that holds the password.")]
PasswordFile = Annotated[str | None, typer.Option(help="File that holds the password.")]
Header = Annotated[
    list[str] | None, typer.Option(help="Header to send, e.g. 'X-Scope-OrgID: team'; may be repeated.")
]
CaFile = Annotated[str | None, typer.Option(help="PEM file of certificate authorities to trust.")]
CertFile = Annotated[str | None, typer.Option(help="PEM file of a client certificate.")]
KeyFile = Annotated[str | None, typer.Option(help="PEM file of its key.")]
TlsVerify = Annotated[bool, typer.Option("--tls-verify/--no-tls-verify", help="Check certificates.")]
Timeout = Annotated[str, typer.Option(help="Longest time for one answer.")]


def prometheus(
    context: typer.Context,
    url: Url,
    since: Since = "30d",
    until: Until = None,
    match: Match = None,
    server: OnlyServer = None,
    server_label: ServerLabel = "instance",
    server_name: ServerName = "{value}",
    raw: Raw = "1d",
    step: Step = "5m",
    token_env: TokenEnv = None,
    token_file: TokenFile = None,
    user: User = None,
    password_env: PasswordEnv = None,
    password_file: PasswordFile = None,
    header: Header = None,
    ca_file: CaFile = None,
    cert_file: CertFile = None,
    key_file: KeyFile = None,
    tls_verify: TlsVerify = True,
    timeout: Timeout = "60s",
    database: Database = None,
    dry_run: DryRun = False,
) -> None:
    """Import the past of all SGLang servers that a Prometheus-compatible API knows. Stopped (Ctrl-C) or run
    again, it goes on where it ended. Exit status: 0 read, 1 nothing usable or not stored, 2 wrong usage.
    """
    try:
        config = _config(context.params)
        _check_times(since, until)
        _run(config, since, until, load_settings({"database": database}), dry_run=dry_run)
    except ValueError as error:
        typer.echo(f"specscope import prometheus: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    except (ApiProblem, SharedError) as error:
        remedy = f"\n{error.remedy}" if isinstance(error, ApiProblem) and error.remedy else ""
        typer.echo(f"specscope import prometheus: {plain(error)}{remedy}", err=True)
        raise typer.Exit(FAILURE) from None


_AS_WRITTEN = (
    "server_label", "server_name", "raw", "step", "timeout", "token_env", "token_file", "user",
    "password_env", "password_file", "tls_verify", "ca_file", "cert_file", "key_file",
)  # fmt: skip


def _config(flags: dict[str, Any]) -> Config:
    """Return what the flags say. Raises ValueError."""
    return Config(
        url=api_url(flags["url"]),
        match=tuple(flags["match"] or ()),
        servers=tuple(flags["server"] or ()),
        headers=dict(_header(text) for text in flags["header"] or ()),
        lag=LAG,
        **{name: flags[name] for name in _AS_WRITTEN},
    )


def _run(config: Config, since: str, until: str | None, settings: Settings, *, dry_run: bool) -> None:
    configure_logging(settings.log_format, "warning")
    asked = Asked(
        config,
        since_ms=lambda now_ms: moment_ms(since, now_ms),
        until_ms=lambda now_ms: min(moment_ms(until or LAG, now_ms), moment_ms(LAG, now_ms)),
        max_series=settings.max_series_per_target,
    )
    with Bars() as bars:
        if dry_run:
            job = HistoryImport(asked, PrintingSink(), bars)
            lines = _finished(job, ())
        else:
            with opened_store(settings) as engine:
                # No limit of age: what is older than the retention of raw samples is kept as summaries.
                limits = Limits(max_series_per_launch=settings.max_series_per_target, max_age_ms=None)
                sink = CountingSink(IngestWriter(engine, system_clock, limits))
                job = HistoryImport(asked, sink, bars, engine)
                lines = _finished(job, sink.stored.items())
    for line in lines:
        typer.echo(line, err=True)
    if not any(outcome.tally.scrapes or not outcome.is_refused for outcome in job.outcomes):
        raise typer.Exit(FAILURE)


def _finished(job: HistoryImport, stored: Any) -> list[str]:
    try:
        found = asyncio.run(job.run())
    except KeyboardInterrupt:
        typer.echo("\nstopped; run the same again and it goes on", err=True)
        raise typer.Exit(STOPPED) from None
    lines = [line for outcome in job.outcomes[:MAX_LISTED] for line in report(outcome)]
    if len(job.outcomes) > MAX_LISTED:
        lines.append(f"          and {len(job.outcomes) - MAX_LISTED} more servers")
    lines += [f"left out  {plain(reason)}" for reason in found.left_out[:MAX_LISTED]]
    return [*lines, *(f"store     {count} × {what}" for what, count in stored if count)]


def report(outcome: Outcome) -> Iterator[str]:
    """Yield what became of one server, in words."""
    tally = outcome.tally
    version = f", {tally.version} or later" if tally.version else ""
    if outcome.is_refused:
        yield f"refused   {plain(outcome.server)}: {plain(outcome.note)}"
        return
    if not tally.scrapes:
        yield f"server    {plain(outcome.server)}: nothing new"
    else:
        read = f"{tally.scrapes} scrapes, {tally.launches} launches{version}"
        yield f"server    {plain(outcome.server)}: {read}"
    if outcome.note:
        yield f"note      {plain(outcome.note)}"
    counts = {
        "scrapes that failed in Prometheus too": tally.failed,
        "scrapes of further targets or replicas under this name, left out": tally.others,
        "scrapes of several processes by turns, of which nothing is taken": tally.doubtful,
        "values refused": tally.refused,
    }
    yield from (f"          {count} × {what}" for what, count in counts.items() if count)
    yield from (f"refused   {plain(reason)}" for reason in tally.refusals)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise ApiConfigError("--header: write it like 'X-Scope-OrgID: team'")
    return name.strip(), value.strip()


def _check_times(since: str, until: str | None) -> None:
    now_ms = system_clock()
    for flag, text in (("--since", since), ("--until", until)):
        try:
            moment_ms(text or "0s", now_ms)
        except ValueError as error:
            raise ValueError(f"{flag}: {error}") from None
    if until is not None and moment_ms(until, now_ms) <= moment_ms(since, now_ms):
        raise ValueError(f"--until {until} is not after --since {since}; give a later time")


class PrintingSink:
    """Prints observations, one JSON object a line, instead of storing them."""

    def __init__(self) -> None:
        self._is_closed = False

    def resume(self, collector_id: str) -> Resume:
        """Begin at the beginning."""
        return Resume()

    def apply(self, batch: Batch) -> bool:
        """Print the observations; who reads may have seen enough (``| head``)."""
        try:
            for piece in as_ndjson(iter(batch.observations)) if not self._is_closed else ():
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self._is_closed = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True


class Bars:
    """A bar for each server on a terminal; elsewhere nothing."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        more = TextColumn("{task.fields[scrapes]} scrapes")
        self._bars = Progress(*columns, more, console=console, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, server: str, total_ms: int) -> None:
        """Show a server."""
        shown = plain(server).replace("[", r"\[")[:60]
        self._tasks[server] = self._bars.add_task(shown, total=total_ms, scrapes=0)

    def move(self, server: str, done_ms: int, tally: Tally) -> None:
        """Show how far it is."""
        self._bars.update(self._tasks[server], completed=done_ms, scrapes=tally.scrapes)
