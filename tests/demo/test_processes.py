"""Real processes: the demo engine starts, says where, refuses a taken port, and never outlives its parent."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.demo.processes import alive, answers, body, children_of, eventually, has_proc, specscope

from specscope_server.demo.children import Children
from specscope_server.demo.listener import PortUnavailableError, listen

needs_proc = pytest.mark.skipif(not has_proc(), reason="finds child processes through /proc")

PARENT = """
import sys, pathlib, time
from specscope_server.demo.children import Children
children = Children(pathlib.Path("engine.log"))
out = children.start("engine", ["demo-engine", "--port", "0"], read_output=True)
print(out.readline().strip(), flush=True)
time.sleep(600)
"""


def url_in(line: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, line
    return found.group()


def test_engine_answers_and_stops_at_sigterm(tmp_path: Path) -> None:
    with specscope("demo-engine", "--port", "0", "--engine-version", "0.5.8", cwd=tmp_path) as process:
        assert process.stdout is not None
        url = url_in(process.stdout.readline())
        assert "specscope_demo_info 1.0" in body(f"{url}/metrics")
        assert '"version":"0.5.8"' in body(f"{url}/server_info")
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert not answers(f"{url}/metrics")


def test_engine_stops_at_ctrl_c_without_a_traceback(tmp_path: Path) -> None:
    with specscope("demo-engine", "--port", "0", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = url_in(process.stdout.readline())
        eventually(lambda: answers(f"{url}/model_info"), "the engine answers")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize("command", ["demo-engine", "demo"])
def test_a_taken_port_is_named_with_the_remedy(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = [sys.executable, "-m", "specscope", command, "--port", str(port)]
        done = subprocess.run(
            arguments, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_port_zero_takes_a_free_port() -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortUnavailableError, match=f"127.0.0.1:{port}.*--port"):
            listen("127.0.0.1", port)


@needs_proc
def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    with specscope(cwd=tmp_path, python=("-c", PARENT)) as parent:
        assert parent.stdout is not None
        url = url_in(parent.stdout.readline())
        (child,) = children_of(parent.pid)
        eventually(lambda: answers(f"{url}/metrics"), "the engine answers")
        parent.kill()
        eventually(lambda: not alive(child), "the engine ended with its parent")
        assert not answers(f"{url}/metrics")


def test_a_child_that_ends_is_noticed_and_explained(tmp_path: Path) -> None:
    children = Children(tmp_path / "log")
    children.start("broken engine", ["demo-engine", "--engine-version", "1.2.3"])
    try:
        eventually(lambda: children.dead() is not None, "the end is noticed")
        assert children.dead() == "broken engine stopped with status 2"
        assert "1.2.3" in (tmp_path / "log").read_text()
    finally:
        children.stop()


def test_stop_kills_what_does_not_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specscope_server.demo.children.STOP_SECONDS", 0.0)
    children = Children(tmp_path / "log")
    output = children.start("engine", ["demo-engine", "--port", "0"], read_output=True)
    assert output is not None
    url = url_in(output.readline())
    children.stop()
    assert not answers(f"{url}/metrics")
    assert children.dead() is None
