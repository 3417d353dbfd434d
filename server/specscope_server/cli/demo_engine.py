"""`specscope demo-engine`: a process that answers like SGLang, with simulated numbers."""

from __future__ import annotations

import contextlib
import os
from enum import StrEnum
from typing import Annotated

import typer
import uvicorn

from specscope_server.demo.engine import create_app
from specscope_server.demo.listener import PortUnavailableError, listen
from specscope_server.demo.player import Player
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS
from specscope_server.kit.clock import system_clock

app = typer.Typer(add_completion=False)


class EngineVersionName(StrEnum):
    """Versions that can be played."""

    OLD = "0.5.8"
    NEW = "0.5.23"


Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Speed = Annotated[float, typer.Option(min=0.1, max=10000, help="How much faster than told the story plays.")]
Version = Annotated[EngineVersionName, typer.Option(help="SGLang version to answer like.")]
Seed = Annotated[int, typer.Option(help="Equal seeds play equally.")]
Name = Annotated[str, typer.Option(help="Model name shown, always followed by '(demo)'.")]


@app.command()
def run(
    port: Port = 30000,
    host: Host = "127.0.0.1",
    speed: Speed = 30.0,
    engine_version: Version = EngineVersionName.NEW,
    seed: Seed = 7,
    name: Name = "Kimi-K2.5",
) -> None:
    """Answer like SGLang with EAGLE-3 on 8 GPUs, playing a story. All numbers are simulated."""
    try:
        listener = listen(host, port)
    except PortUnavailableError as error:
        typer.echo(f"specscope demo-engine: {error}", err=True)
        raise typer.Exit(2) from error
    player = Player(VERSIONS[engine_version.value], Story(speed), seed, name, system_clock(), os.getpid())
    bound_host, bound_port = listener.getsockname()[:2]
    print(f"demo engine {engine_version.value} (simulated) at http://{bound_host}:{bound_port}", flush=True)
    engine = create_app(player, system_clock, bound_host, bound_port)
    config = uvicorn.Config(engine, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has stopped in order by then
        uvicorn.Server(config).run(sockets=[listener])


def main(argv: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        app(argv, prog_name="specscope demo-engine")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
