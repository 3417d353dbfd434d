"""One run of `specscope demo`: two demo engines and the dashboard that watches them, as child processes."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specscope_collectors.references.document import packed
from specscope_server.demo.alert_rules import INTERVAL_SECONDS, alerts_file
from specscope_server.demo.children import Children
from specscope_server.demo.states import references

VERSIONS = ("0.5.8", "0.5.23")
READY_SECONDS = 60.0
POLL_SECONDS = 0.2
LOG_TAIL_LINES = 15
SEND_SECONDS = 30.0
SPOOLS = "demo-states"
"""Folder beside the log for what the engines' probes write."""


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
    rules: tuple[Mapping[str, Any], ...] = ()
    """Rules of alerts as they are written in files; they are hurried as the story is."""


def watch_name(version: str) -> str:
    """Return the name under which a demo engine is watched."""
    return f"story-{version} (demo)"


def start_engines(children: Children, options: DemoOptions) -> list[str]:
    """Start one engine per version on free ports and return ``NAME=URL`` for each; raise `DemoError`."""
    outputs = {}
    shutil.rmtree(
        children.log.parent / SPOOLS, ignore_errors=True
    )  # of a demo before, whose launches are over
    for version in VERSIONS:
        arguments = ["demo-engine", "--port", "0", "--engine-version", version]
        arguments += ["--speed", str(options.speed), "--seed", str(options.seed)]
        arguments += ["--report-to", f"http://127.0.0.1:{options.port}", "--report-as", watch_name(version)]
        arguments += ["--state-spool", str(spool_of(children, version))]
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
    arguments += ["--collect", str(_collect_file(children))]
    arguments += ["--alerts", str(_alerts_file(children, options))]
    arguments += ["--alert-interval-seconds", str(INTERVAL_SECONDS)]
    children.start("specscope serve", arguments)
    return f"http://127.0.0.1:{options.port}"


def spool_of(children: Children, version: str) -> Path:
    """Return the folder into which the probe of an engine writes."""
    return children.log.parent / SPOOLS / version


def _collect_file(children: Children) -> Path:
    """Write what is collected besides the engines' metrics: profiles of hidden states."""
    path = children.log.parent / SPOOLS / "collect.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = []
    for version in VERSIONS:
        folder = spool_of(children, version)
        folder.mkdir(exist_ok=True)
        names = f"server = {json.dumps(watch_name(version))}\nspool = {json.dumps(str(folder))}"
        tables.append(f"[[probe]]\n{names}\ninterval_seconds = 2\n")
    path.write_text("\n".join(tables))
    return path


def _alerts_file(children: Children, options: DemoOptions) -> Path:
    """Write the rules that are evaluated."""
    path = children.log.parent / SPOOLS / "alerts.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(alerts_file(options.rules, options.speed))
    return path


def send_references(url: str, stop: threading.Event) -> threading.Thread:
    """Upload what the drafts were trained on, beside the waiting user; the demo goes on without it."""

    def send() -> None:
        for reference in references(round(time.time() * 1000)):
            request = urllib.request.Request(  # noqa: S310 - our own http URL
                f"{url}/api/v1/references", packed(reference), {"content-type": "application/gzip"}
            )
            with contextlib.suppress(urllib.error.URLError, OSError):
                if not stop.is_set():
                    urllib.request.urlopen(request, timeout=SEND_SECONDS).close()  # noqa: S310

    thread = threading.Thread(target=send, name="references", daemon=True)
    thread.start()
    return thread


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
