"""A server and collectors that are real processes, to be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Engine, text
from tests.support.rig import free_port, log_tail

ROOT = Path(__file__).resolve().parents[2]
SERVE, FEEDER, COLLECT = (
    "specscope_server.cli.serve",
    "tests.faults.feeder",
    "specscope_collectors.cli.collect",
)
DEADLINE_SECONDS = 180.0


@dataclass
class Forks:
    """Starts processes by fork."""

    process: subprocess.Popen[str]
    folder: Path

    def start(self, module: str, *argv: object) -> int:
        """Return the id of a process that runs `module.main(argv)`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        log = self.folder / f"{module.rpartition('.')[2]}.log"
        order = {"module": module, "argv": [str(each) for each in argv], "log": str(log)}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def logs(self) -> str:
        """Return the ends of all logs, for a test that fails."""
        return "\n".join(f"{path.name}:\n{log_tail(path)}" for path in sorted(self.folder.glob("*.log")))


@contextmanager
def forks(folder: Path, modules: Sequence[str] = (SERVE, FEEDER, COLLECT)) -> Iterator[Forks]:
    """Prepare to start processes; those that still run at the end are killed."""
    command = [sys.executable, "-m", "tests.faults.forking", *modules]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Forks(process, folder)


@dataclass
class Serving:
    """A server at one port, which can be started again and again."""

    starting: Forks
    database: str
    port: int = 0
    pid: int = 0

    def __post_init__(self) -> None:
        self.port = self.port or free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until it answers."""
        self.pid = self.starting.start(SERVE, "--port", self.port, "--database", self.database)
        wait_for("answer of the server", self.answers, self.starting)

    def answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz", timeout=1.0).status_code == 200
        return False

    def kill(self) -> None:
        kill(self.pid)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process of ours, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.002)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(what: str, look: Callable[[], Any], starting: Forks | None = None, every: float = 0.01) -> None:
    """Look again and again until it is so."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not look():
        logs = starting.logs() if starting is not None else ""
        assert time.monotonic() < deadline, f"no {what} after {DEADLINE_SECONDS} s\n{logs}"
        time.sleep(every)


def number(engine: Engine, statement: str) -> float:
    """Return the one number that a query gives; 0 for none."""
    with engine.connect() as connection:
        return float(connection.execute(text(statement)).scalar() or 0)
