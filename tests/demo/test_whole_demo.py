"""`specscope demo` as a user runs it: one URL, both engines on the dashboard, everything gone afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.demo.processes import alive, answers, body, children_of, eventually, has_proc, specscope

pytestmark = pytest.mark.skipif(not has_proc(), reason="finds child processes through /proc")

NAMES = {"story-0.5.8 (demo)", "story-0.5.23 (demo)"}


@dataclass(frozen=True)
class Demo:
    """A running demo."""

    process: subprocess.Popen[str]
    url: str
    children: list[int]

    def gone(self) -> bool:
        """Return whether neither the demo nor a child of it is left."""
        return self.process.poll() is not None and not any(alive(child) for child in self.children)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def launches(url: str) -> dict[str, int]:
    """Return how many launches the dashboard knows of each server; fails if one is not marked as a demo."""
    servers = json.loads(body(f"{url}/api/v1/servers"))["servers"]
    assert all(server["is_demo"] for server in servers if server["launches"])
    return {server["name"]: server["launches"] for server in servers}


@contextmanager
def demo(folder: Path) -> Iterator[Demo]:
    """Start a demo in ``folder`` and wait for its line."""
    port = free_port()
    arguments = ("demo", "--port", str(port), "--no-browser")
    # A user's settings of a real server must not reach the demo: with the token it would ask for a login.
    (folder / "specscope.toml").write_text('watch = ["http://127.0.0.1:9"]')
    with specscope(*arguments, cwd=folder, SPECSCOPE_TOKEN="of-a-real-server") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        assert re.findall(r"https?://\S+", line) == [f"http://127.0.0.1:{port}"]
        yield Demo(process, f"http://127.0.0.1:{port}", children_of(process.pid))


def test_both_engines_are_on_the_dashboard_and_all_stops_at_ctrl_c(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        assert len(running.children) == 3
        assert answers(f"{running.url}/readyz")
        eventually(
            lambda: all(name in body(f"{running.url}/api/v1/servers") for name in NAMES), "both are listed"
        )
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(30) == 0
        assert running.gone()
        assert running.process.stdout is not None
        assert running.process.stdout.read() == ""  # one line was all
    assert (tmp_path / "var" / "demo.sqlite3").exists()


def test_a_second_start_keeps_what_the_first_saw(tmp_path: Path) -> None:
    for runs in (1, 2):
        with demo(tmp_path) as running:
            url, wanted = running.url, dict.fromkeys(NAMES, runs)
            eventually(
                lambda url=url, wanted=wanted: launches(url) == wanted, f"the launches of {runs} starts"
            )
            running.process.terminate()
            assert running.process.wait(30) == 0
            assert running.gone()


def test_nothing_is_left_when_the_demo_is_killed(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        running.process.kill()
        eventually(running.gone, "all children ended with the demo")
        assert not answers(f"{running.url}/readyz")


def test_the_demo_ends_and_says_why_when_a_child_dies(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        os.kill(running.children[0], signal.SIGKILL)
        assert running.process.wait(30) == 1
        assert running.gone()
        assert running.process.stderr is not None
        assert "demo engine 0.5.8 stopped with status -9" in running.process.stderr.read()
