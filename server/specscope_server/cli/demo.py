"""`specscope demo`: two demo engines and the dashboard that watches them, in one go."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from specscope_server.alerts.rules.packed import pack
from specscope_server.cli.demo_engine import Speed
from specscope_server.demo.children import Children
from specscope_server.demo.listener import PortUnavailableError, listen
from specscope_server.demo.session import (
    DemoError,
    DemoOptions,
    log_tail,
    run_until,
    send_references,
    start_engines,
    start_server,
    wait_until_ready,
)

app = typer.Typer(add_completion=False)

Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the dashboard.")]
Database = Annotated[str, typer.Option(help="SQLite file, or database URL, that keeps the demo's data.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")]


def database_url(database: str) -> str:
    """Return the URL of the demo's database; the folder of a SQLite file is made."""
    if "://" in database:
        return database
    path = Path(database).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{path}"


def has_screen() -> bool:
    """Return whether someone sits at a terminal with a desktop, where opening a browser is of use."""
    desktop = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return desktop and sys.stdout.isatty()


def new_log(database: str) -> Path:
    """Return an empty log file, beside the database where that is a file."""
    log = Path("var/demo.log" if "://" in database else database).absolute().with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    return log


@app.command()
def run(
    port: Port = 8200,
    speed: Speed = 30.0,
    database: Database = "var/demo.sqlite3",
    no_browser: NoBrowser = False,
) -> None:
    """Play a story on two demo engines and show it on the dashboard. All numbers are simulated."""
    try:
        listen("127.0.0.1", port).close()  # before anything is started: a clear word about a taken port
    except PortUnavailableError as error:
        typer.echo(f"specscope demo: {error}", err=True)
        raise typer.Exit(2) from error
    # A new seed for each run, so that its launches are not taken for those of the run before.
    rules = tuple(rule.model_dump(mode="json", by_alias=True) for rule in pack().values())
    options = DemoOptions(port, speed, int(time.time()), database_url(database), rules)
    raise typer.Exit(play(options, new_log(database), open_browser=has_screen() and not no_browser))


def play(options: DemoOptions, log: Path, *, open_browser: bool) -> int:
    """Run the demo until it is told to stop; return the exit status."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    children = Children(log)
    try:
        url = start_server(children, options, start_engines(children, options))
        if wait_until_ready(children, url, stop):
            send_references(url, stop)
            print(f"Specscope demo (simulated data) is ready: {url}   Ctrl-C stops it.", flush=True)
            if open_browser:
                webbrowser.open(url)
            run_until(children, stop)
    except DemoError as error:
        children.stop()
        typer.echo(f"specscope demo: {error}; the end of {log}:\n{log_tail(log)}", err=True)
        return 1
    finally:
        children.stop()
    return 0


def main(argv: list[str]) -> int:
    """Run the command and return its exit status."""
    try:
        app(argv, prog_name="specscope demo")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
