"""`specscope demo-engine`: a process that answers like SGLang, with simulated numbers."""

from __future__ import annotations

import contextlib
import os
import threading
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import uvicorn

from specscope_collectors.report import Reporter
from specscope_server.demo.engine import create_app
from specscope_server.demo.listener import PortUnavailableError, listen
from specscope_server.demo.player import Player
from specscope_server.demo.profile_reports import CaptureReports
from specscope_server.demo.reports import Reports
from specscope_server.demo.state_spool import StateSpool
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS
from specscope_server.kit.clock import system_clock

app = typer.Typer(add_completion=False)
CLOSE_SECONDS = 0.5
"""How long the end waits for the last reports: a dashboard that stops with the engine takes none."""


class EngineVersionName(StrEnum):
    """Versions that can be played."""

    OLD = "0.5.8"
    NEW = "0.5.23"


Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Speed = Annotated[float, typer.Option(min=0.1, max=10000, help="How much faster than told the story plays.")]
Version = Annotated[EngineVersionName, typer.Option(help="SGLang version to answer like.")]
Seed = Annotated[int, typer.Option(help="Equal seeds play equally.")]
ReportTo = Annotated[
    str,
    typer.Option(help="Address of a Specscope to which finished requests are reported, as clients would."),
]
ReportAs = Annotated[str, typer.Option(help="Name of this engine there; needed with --report-to.")]
StateSpoolFolder = Annotated[
    Path | None, typer.Option(help="Folder into which its probe writes profiles of hidden states.")
]
Name = Annotated[str, typer.Option(help="Model name shown, always followed by '(demo)'.")]


@app.command()
def run(
    port: Port = 30000,
    host: Host = "127.0.0.1",
    speed: Speed = 30.0,
    engine_version: Version = EngineVersionName.NEW,
    seed: Seed = 7,
    name: Name = "Kimi-K2.5",
    report_to: ReportTo = "",
    report_as: ReportAs = "",
    state_spool: StateSpoolFolder = None,
) -> None:
    """Answer like SGLang with EAGLE-3 on 8 GPUs, playing a story. All numbers are simulated."""
    if report_to and not report_as:
        typer.echo("specscope demo-engine: --report-to needs --report-as, the engine's name there", err=True)
        raise typer.Exit(2)
    try:
        listener = listen(host, port)
    except PortUnavailableError as error:
        typer.echo(f"specscope demo-engine: {error}", err=True)
        raise typer.Exit(2) from error
    reporter = Reporter(report_to, report_as) if report_to else None
    player = Player(VERSIONS[engine_version.value], Story(speed), seed, name, system_clock(), os.getpid())
    if reporter:
        player.reports = Reports(reporter.report, engine_version.value, f"{seed}/{system_clock()}")
    ended = threading.Event()
    if report_to and engine_version is EngineVersionName.NEW:
        CaptureReports(report_to, report_as, player.story, player.started_ms, system_clock, ended).start()
    bound_host, bound_port = listener.getsockname()[:2]
    print(f"demo engine {engine_version.value} (simulated) at http://{bound_host}:{bound_port}", flush=True)
    spool = StateSpool(state_spool) if state_spool else None
    engine = create_app(player, system_clock, bound_host, bound_port, spool)
    config = uvicorn.Config(engine, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has stopped in order by then
        uvicorn.Server(config).run(sockets=[listener])
    ended.set()
    if reporter:
        reporter.close(timeout_seconds=CLOSE_SECONDS)


def main(argv: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        app(argv, prog_name="specscope demo-engine")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
