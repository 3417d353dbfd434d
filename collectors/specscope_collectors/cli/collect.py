"""`specscope collect`: collect on this machine, store elsewhere."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry, start_http_server

from specscope_collectors.cli.logs import configure_logs
from specscope_collectors.clock import system_clock
from specscope_collectors.collect_file import CollectFileError, load_collect_file
from specscope_collectors.compose import compose, reloading_on_hangup
from specscope_collectors.config import CollectorOptions, OptionsError, TargetError
from specscope_collectors.job_set import JobSetError
from specscope_collectors.plan import CollectPlan, Watching, watching_all
from specscope_collectors.preview import preview, preview_lines
from specscope_collectors.push import Pusher
from specscope_collectors.push_options import PushOptions
from specscope_collectors.push_status import StatusMetrics, read_status, words_of
from specscope_collectors.runner import Runner
from specscope_collectors.spool import Spool, SpoolLimits
from specscope_collectors.spool_files import SpoolError
from specscope_collectors.spool_sink import SpoolSink
from specscope_collectors.watching import targets_here

USAGE_ERROR, FAILURE = 2, 1
MIB = 1024 * 1024
LOOK_SECONDS = 1.0


class EndedError(Exception):
    """The collectors ended without being asked to."""


USAGE = (CollectFileError, OptionsError, TargetError, JobSetError)
FAILURES = (SpoolError, EndedError)


class LogFormat(StrEnum):
    """How logs are written."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """Least severe level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Server = Annotated[
    str | None,
    typer.Option(help="Base URL of the Specscope that stores it all.", envvar="SPECSCOPE_SERVER"),
]
Config = Annotated[
    Path | None,
    typer.Option(help="The collectors' file (TOML): servers, jobs, discovery. It is followed while running."),
]
Watch = Annotated[
    list[str] | None,
    typer.Option(
        help="Base URL of an inference server to watch; NAME=URL names it; may be repeated.",
        envvar="SPECSCOPE_WATCH",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        help="File with a token of the scope ingest. Without it: SPECSCOPE_PUSH_TOKEN, or none.",
        envvar="SPECSCOPE_PUSH_TOKEN_FILE",
    ),
]
SpoolFolder = Annotated[
    Path,
    typer.Option("--spool", help="Folder in which batches wait for the server.", envvar="SPECSCOPE_SPOOL"),
]
SpoolBytes = Annotated[
    int,
    typer.Option("--spool-max-bytes", min=MIB, help="Largest size of the spool; then the oldest is dropped."),
]
Name = Annotated[
    str | None,
    typer.Option(help="Name of this collector on the Sources page; without it: the file's, or the host's."),
]
Interval = Annotated[
    float | None,
    typer.Option(min=0.1, max=3600, help="Time between two reads of a server's metrics, in seconds."),
]
ServerTls = Annotated[
    bool,
    typer.Option("--server-tls-verify/--no-server-tls-verify", help="Check the certificate of --server."),
]
ServerCa = Annotated[
    Path | None, typer.Option(help="PEM file of the authority that signed the certificate of --server.")
]
Tls = Annotated[
    bool, typer.Option("--tls-verify/--no-tls-verify", help="Check certificates of watched servers.")
]
Ca = Annotated[
    Path | None, typer.Option(help="PEM file of the authority that signed the watched servers' certificates.")
]
Flush = Annotated[
    float, typer.Option(min=0, max=600, help="At the end, go on sending what waits for so many seconds.")
]
MetricsPort = Annotated[
    int | None,
    typer.Option(min=0, max=65_535, help="Serve /metrics of this collector on 127.0.0.1 and this port."),
]
Status = Annotated[
    bool,
    typer.Option(
        "--status", help="Print how the collector of this --spool does, and end: 0 when all is well."
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Print what would be collected, and end: 0 when the file and its discoveries are good.",
    ),
]
Format = Annotated[LogFormat, typer.Option(help="`text` for people, `json` for machines.")]
Level = Annotated[LogLevel, typer.Option(help="Least severe level that is logged.")]


def collect(
    server: Server = None,
    config: Config = None,
    watch: Watch = None,
    token_file: TokenFile = None,
    spool: SpoolFolder = Path("specscope-spool"),
    spool_max_bytes: SpoolBytes = 2048 * MIB,
    name: Name = None,
    scrape_interval_seconds: Interval = None,
    server_tls_verify: ServerTls = True,
    server_ca_file: ServerCa = None,
    tls_verify: Tls = True,
    ca_file: Ca = None,
    flush_seconds: Flush = 10.0,
    metrics_port: MetricsPort = None,
    status: Status = False,
    check: Check = False,
    log_format: Format = LogFormat.TEXT,
    log_level: Level = LogLevel.INFO,
) -> None:
    """Collect on this machine and push to a Specscope elsewhere, by way of a spool on disk: while the server
    is away, nothing is lost. Exit status: 0 ended as asked, 1 cannot go on, 2 wrong usage.
    """
    if status:
        raise typer.Exit(show_status(spool))
    configure_logs(log_format.value, log_level.value)
    try:
        base = engine_options(scrape_interval_seconds, tls_verify=tls_verify, ca_file=ca_file)
        if check:
            raise typer.Exit(show_plan(plan_of(config, watch or [], base)))
        options = push_options(server, token_file, verify=server_tls_verify, ca_file=server_ca_file)
        plan = plan_of(config, watch or [], base)
        plan = plan if name is None else replace(plan, name=name)
        limits = SpoolLimits(max_bytes=spool_max_bytes)
        run(plan, options, spool, limits, flush_seconds, metrics_port)
    except (*USAGE, *FAILURES) as error:
        typer.echo(f"specscope collect: {error}", err=True)
        raise typer.Exit(FAILURE if isinstance(error, FAILURES) else USAGE_ERROR) from None


def engine_options(interval: float | None, *, tls_verify: bool, ca_file: Path | None) -> CollectorOptions:
    """Return how servers are watched. Raises `OptionsError`."""
    key = os.environ.get("SPECSCOPE_ENGINE_API_KEY", "").strip() or None
    options = CollectorOptions(
        api_key=key,
        tls_verify=tls_verify,
        ca_file=str(ca_file) if ca_file else None,
        loopback_name=socket.gethostname(),
    )
    if interval is None:
        return options
    timeout = min(options.scrape_timeout_seconds, interval)
    return replace(options, scrape_interval_seconds=interval, scrape_timeout_seconds=timeout)


def push_options(
    server: str | None, token_file: Path | None, *, verify: bool, ca_file: Path | None
) -> PushOptions:
    """Return where to push. Raises `OptionsError`."""
    if not server:
        raise OptionsError(
            "--server is missing: name the Specscope that stores it all, e.g. https://specscope"
        )
    token = os.environ.get("SPECSCOPE_PUSH_TOKEN", "").strip()
    return PushOptions(
        server=server,
        token_file=token_file,
        token=token,
        tls_verify=verify,
        ca_file=str(ca_file) if ca_file else None,
    )


def plan_of(config: Path | None, watch: list[str], base: CollectorOptions) -> CollectPlan:
    """Return what to collect. Raises `CollectFileError`, `TargetError`, `OptionsError`."""
    texts = [text for each in watch for text in each.replace(",", " ").split()]
    also = watching_all(tuple(targets_here(texts, socket.gethostname())), base)
    if config is not None:
        return load_collect_file(config, base, also)
    if not also:
        raise OptionsError("nothing to collect: name servers with --watch URL, or a file with --config")
    return CollectPlan(options=base, targets=tuple[Watching, ...](also))


def run(
    plan: CollectPlan,
    options: PushOptions,
    folder: Path,
    limits: SpoolLimits,
    flush_seconds: float,
    metrics_port: int | None,
) -> None:
    """Collect and push until SIGINT or SIGTERM; what was started is stopped, and what waits is sent.

    Raises `SpoolError`, `OptionsError`, `JobSetError`, `EndedError`.
    """
    with ExitStack() as stack:
        spool = Spool(folder, limits)
        stack.callback(spool.close)
        sink = SpoolSink(spool, plan.collector)
        pusher = Pusher(spool, sink, options, plan.collector)
        runner = compose(plan, sink, system_clock)
        if metrics_port is not None:
            _serve_metrics(pusher, metrics_port)
        stop = stack.enter_context(_told_to_stop())
        stack.enter_context(reloading_on_hangup(runner))
        runner.start()
        pusher.start()
        typer.echo(f"Specscope collects {_what(plan)} for {options.server}; spool {folder}. Ctrl-C stops it.")
        try:
            _wait(stop, runner)
        finally:
            runner.stop()
            pusher.stop(flush_seconds)


def show_plan(plan: CollectPlan) -> int:
    """Print what would be collected; return 0 when all of it is good, else 1. Raises `JobSetError`."""
    seen = preview(plan)
    for line in preview_lines(seen):
        typer.echo(line)
    return 0 if seen.is_good else FAILURE


def show_status(folder: Path) -> int:
    """Print the status of the collector that uses this spool; return 0 when all is well, else 1."""
    try:
        status = read_status(folder)
    except (OSError, ValueError) as error:
        typer.echo(
            f"specscope collect: no status in {folder} ({error}); is --spool the folder that it uses?",
            err=True,
        )
        return FAILURE
    for line in words_of(status, system_clock()):
        typer.echo(line)
    return 0 if status.state == "ok" and not status.spool_problem else FAILURE


def main(argv: list[str]) -> int:
    """Run the command until it is told to stop; return the exit status."""
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command.command()(collect)
    try:
        command(argv, prog_name="specscope collect")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _wait(stop: threading.Event, runner: Runner) -> None:
    while not stop.wait(LOOK_SECONDS):
        if not runner.is_running:
            raise EndedError("the collectors ended by themselves; the log says why. Start again")


def _what(plan: CollectPlan) -> str:
    names = ", ".join(each.target.name for each in plan.targets) or "what its file finds"
    return names if len(names) <= 200 else f"{len(plan.targets)} servers"


def _serve_metrics(pusher: Pusher, port: int) -> None:
    registry = CollectorRegistry()
    registry.register(StatusMetrics(pusher))
    try:
        start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise OptionsError(
            f"--metrics-port {port}: cannot listen there ({error.strerror}); take another"
        ) from None


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
