"""`specscope serve`: watch servers and serve the dashboard, in one process."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer
import uvicorn
from fastapi import FastAPI

from specscope_collectors.compose import compose, reloading_on_hangup
from specscope_collectors.plan import CollectPlan
from specscope_server.alerts.file import read_alerts_file
from specscope_server.app import create_app
from specscope_server.cli.collecting import COLLECT_ERRORS, is_empty, plan_of
from specscope_server.cli.flags import with_settings_flags
from specscope_server.ingest.service import make_sink
from specscope_server.kit.clock import system_clock
from specscope_server.kit.errors import InvalidInput, SpecscopeError
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.logging import configure_logging
from specscope_server.settings import Settings, load_settings
from specscope_server.startup import prepare_store
from specscope_server.store.engine import create_store_engine

USAGE_ERROR, FAILURE = 2, 1
SHUTDOWN_SECONDS = 5
KEEP_ALIVE_SECONDS = 75
"""Longer than clients and proxies keep a connection, so that it does not end under a request."""
MAX_NAMED = 8
"""Servers named in the first line."""


def main(argv: list[str]) -> int:
    """Run the command until it is told to stop; return the exit status."""
    command = typer.Typer(add_completion=False)
    command.command()(with_settings_flags(serve))
    try:
        command(argv, prog_name="specscope serve")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def serve(config: Path | None, **flags: Any) -> None:
    """Watch servers, keep what they say in a database, and serve the dashboard."""
    try:
        settings = load_settings(flags, config)
        plan = plan_of(settings)
        if settings.alerts is not None:
            read_alerts_file(settings.alerts)  # says what is wrong with it before anything is started
        listener = listen(settings.host, settings.port)
    except (InvalidInput, *COLLECT_ERRORS) as error:
        typer.echo(f"specscope serve: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    configure_logging(settings.log_format, settings.log_level)
    try:
        with listener:
            run(settings, plan, listener)
    except COLLECT_ERRORS as error:
        typer.echo(f"specscope serve: {error}", err=True)
        raise typer.Exit(USAGE_ERROR) from None
    except SpecscopeError as error:
        typer.echo(f"specscope serve: {error}", err=True)
        raise typer.Exit(FAILURE) from None


def run(settings: Settings, plan: CollectPlan, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; everything that was started is stopped."""
    with ExitStack() as stack:
        engine = create_store_engine(settings.database)
        stack.callback(engine.dispose)
        prepare_store(engine, settings)
        telemetry = Telemetry()
        sink = make_sink(engine, telemetry, settings.retention_raw_days)
        runner = None if is_empty(plan) else compose(plan, sink, system_clock)
        alive = None if runner is None else lambda: runner.is_running
        app = create_app(settings, engine=engine, telemetry=telemetry, collectors_alive=alive, sink=sink)
        if runner is not None:
            runner.start()
            stack.callback(runner.stop)
            stack.enter_context(reloading_on_hangup(runner))
        _serve(app, listener, greeting(settings, plan, listener))


def greeting(settings: Settings, plan: CollectPlan, listener: socket.socket) -> str:
    """Return the line that says where the dashboard is and what is watched."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    named = [watching.target.name for watching in plan.targets[:MAX_NAMED]]
    named += [f"{len(plan.targets) - MAX_NAMED} more"] if len(plan.targets) > MAX_NAMED else []
    named += [f"what {plan.file.path} says"] if plan.file is not None else []
    doing = (
        f"watching {', '.join(named)}"
        if named
        else "watching nothing (no --watch): it shows what the database holds"
    )
    return f"Specscope is ready: http://{shown}:{port}   {doing}. Ctrl-C stops it."


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `InvalidInput` for a port in use or an address that is not ours."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bound(family, address[:2])
    except PermissionError:
        raise InvalidInput(f"--port {port}: this user may not listen there; take a port above 1023") from None
    except OSError as error:
        remedy = "stop what listens there or choose another --port (0 = any free one)"
        if isinstance(error, socket.gaierror):
            remedy = "name an address of this machine"
        raise InvalidInput(
            f"--host {host} --port {port}: cannot listen there ({error.strerror}); {remedy}"
        ) from None


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    # The protocol is named because only then does asyncio turn Nagle's algorithm off: else each answer of two
    # packets waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(1_024)
    except OSError:
        listener.close()
        raise
    return listener


class _Server(uvicorn.Server):
    """Says that it is ready once it is."""

    greeting = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            print(self.greeting, flush=True)


def _serve(app: FastAPI, listener: socket.socket, line: str) -> None:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = _Server(config)
    server.greeting = line
    with _signals_end_quietly():
        server.run(sockets=[listener])


@contextmanager
def _signals_end_quietly() -> Iterator[None]:
    """uvicorn stops on a signal and then raises it again; by then it has been heeded: it must not kill us."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
