"""`specscope demo-engine`: a process that answers like SGLang, with simulated numbers."""

from __future__ import annotations

import os
import socket
from enum import StrEnum
from typing import Annotated

import typer
import uvicorn

from specscope_server.demo.engine import create_app
from specscope_server.demo.player import Player
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS
from specscope_server.kit.clock import system_clock

app = typer.Typer(add_completion=False)


class EngineVersionName(StrEnum):
    """Versions that can be played."""

    OLD = "0.5.8"
    NEW = "0.5.23"


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; a port that is taken is an error that names the port and the remedy."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise typer.BadParameter(
            f"cannot listen on {host}:{port}: {error.strerror}. Stop what uses port {port}, "
            "or choose another with --port (0 takes a free one)."
        ) from error
    listener.listen(128)
    return listener


@app.command()
def run(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 30000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    speed: Annotated[
        float, typer.Option(min=0.1, max=10000, help="How much faster than told the story plays.")
    ] = 30.0,
    engine_version: Annotated[
        EngineVersionName, typer.Option(help="SGLang version to answer like.")
    ] = EngineVersionName.NEW,
    seed: Annotated[int, typer.Option(help="Equal seeds play equally.")] = 7,
    name: Annotated[str, typer.Option(help="Model name shown, always followed by '(demo)'.")] = "Kimi-K2.5",
) -> None:
    """Answer like SGLang with EAGLE-3 on 8 GPUs, playing a story. All numbers are simulated."""
    listener = listen(host, port)
    player = Player(VERSIONS[engine_version.value], Story(speed), seed, name, system_clock(), os.getpid())
    bound_host, bound_port = listener.getsockname()[:2]
    print(f"demo engine {engine_version.value} (simulated) at http://{bound_host}:{bound_port}", flush=True)
    config = uvicorn.Config(create_app(player, system_clock), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


def main(argv: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        app(argv, standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.BadParameter as error:
        typer.echo(f"specscope demo-engine: {error.format_message()}", err=True)
        return 2
    return 0
