"""Child processes of `specscope demo`: started together, stopped together, never left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

STOP_SECONDS = 8.0


def _clean_environment() -> dict[str, str]:
    """Return the environment without the user's own settings of a real server."""
    return {key: value for key, value in os.environ.items() if not key.startswith("SPECSCOPE_")}


@dataclass(slots=True)
class Children:
    """`specscope` commands run as child processes.

    ``log`` (an absolute path) takes what they write; its folder is where they run.
    """

    log: Path
    _processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, name: str, arguments: list[str], *, read_output: bool = False) -> IO[str] | None:
        """Start ``specscope ARGUMENTS`` under `guard`; return its standard output if it is to be read."""
        with self.log.open("a") as log:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", "specscope_server.demo.guard", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if read_output else log,
                stderr=log,
                cwd=self.log.parent,  # not where a specscope.toml of the user's may lie
                env=_clean_environment(),
                text=True,
                start_new_session=True,  # Ctrl-C reaches the parent only, which stops them in order
            )
        self._processes[name] = process
        return process.stdout

    def dead(self) -> str | None:
        """Return what ended on its own, in words; None while all run."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                return f"{name} stopped with status {process.returncode}"
        return None

    def stop(self) -> None:
        """Ask all to stop, newest first, and kill what has not stopped after `STOP_SECONDS`."""
        processes = list(reversed(self._processes.values()))
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        self._processes.clear()
