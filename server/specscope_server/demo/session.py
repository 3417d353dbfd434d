"""One run of `specscope demo`: two demo engines and the dashboard that watches them, as child processes."""

from __future__ import annotations

import re
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from specscope_server.demo.children import Children

VERSIONS = ("0.5.8", "0.5.23")
READY_SECONDS = 60.0
POLL_SECONDS = 0.2
LOG_TAIL_LINES = 15


class DemoError(Exception):
    """A part of the demo did not start or stopped on its own."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the user chose."""

    port: int
    speed: float
    seed: int
    database: str
    """Database URL."""


def watch_name(version: str) -> str:
    """Return the name under which a demo engine is watched."""
    return f"story-{version} (demo)"


def start_engines(children: Children, options: DemoOptions) -> list[str]:
    """Start one engine per version on free ports and return ``NAME=URL`` for each; raise `DemoError`."""
    outputs = {}
    for version in VERSIONS:
        arguments = ["demo-engine", "--port", "0", "--engine-version", version]
        arguments += ["--speed", str(options.speed), "--seed", str(options.seed)]
        arguments += ["--report-to", f"http://127.0.0.1:{options.port}", "--report-as", watch_name(version)]
        outputs[version] = children.start(f"demo engine {version}", arguments, read_output=True)
    watched = []
    for version, output in outputs.items():
        line = output.readline() if output else ""  # ends when the process does
        found = re.search(r"http://\S+", line)
        if not found:
            raise DemoError(f"the demo engine {version} did not start")
        watched.append(f"{watch_name(version)}={found.group()}")
    return watched


def start_server(children: Children, options: DemoOptions, watched: list[str]) -> str:
    """Start the dashboard and return its URL."""
    arguments = ["serve", "--host", "127.0.0.1", "--port", str(options.port)]
    arguments += ["--database", options.database, "--migrate"]
    arguments += [
        "--scrape-interval-seconds",
        "1",
        "--scrape-timeout-seconds",
        "0.9",
        "--info-interval-seconds",
        "10",
    ]
    for target in watched:
        arguments += ["--watch", target]
    children.start("specscope serve", arguments)
    return f"http://127.0.0.1:{options.port}"


def wait_until_ready(children: Children, url: str, stop: threading.Event) -> bool:
    """Wait until ``/readyz`` answers 200; False if told to stop; raise `DemoError` if that cannot be."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if dead := children.dead():
            raise DemoError(dead)
        if _is_ready(url):
            return True
        if stop.wait(POLL_SECONDS):
            return False
    raise DemoError(f"the dashboard did not become ready at {url}/readyz within {READY_SECONDS:.0f} s")


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:  # noqa: S310 - our own http URL
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def run_until(children: Children, stop: threading.Event) -> None:
    """Wait until told to stop; raise `DemoError` when a child stops on its own."""
    while not stop.wait(POLL_SECONDS):
        if dead := children.dead():
            raise DemoError(dead)


def log_tail(log: Path) -> str:
    """Return the last lines of the log, to explain a failure."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"  | {line}" for line in lines[-LOG_TAIL_LINES:])
