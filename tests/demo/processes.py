"""Real processes for tests of the demo: start, ask, wait with a deadline, look for what was left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE_SECONDS = 180.0
POLL_SECONDS = 0.05


def eventually(holds: Callable[[], object], what: str) -> None:
    """Poll until ``holds()`` is true; fail with ``what`` after the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"still not true after {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(POLL_SECONDS)


@contextmanager
def specscope(
    *arguments: str, cwd: Path, python: tuple[str, ...] = (), **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """Run a `specscope` command (or other ``python`` arguments) and make sure that it is gone afterwards.

    ``variables`` are added to the environment.
    """
    command = [sys.executable, *(python or ("-m", "specscope")), *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=os.environ | variables,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def alive(pid: int) -> bool:
    """Return whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def answers(url: str) -> bool:
    """Return whether a GET is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def body(url: str) -> str:
    """Return the body of a GET."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def has_proc() -> bool:
    """Return whether processes can be looked up the Linux way."""
    return os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
