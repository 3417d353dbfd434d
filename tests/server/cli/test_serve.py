"""`specscope serve` as a process: ready line, clean stop, clear errors."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from specscope_collectors.plan import CollectPlan
from specscope_server.cli.serve import greeting, listen, main
from specscope_server.kit.errors import InvalidInput
from specscope_server.settings import Settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("SPECSCOPE_") and not name.startswith("SPECSCOPE_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "specscope",
        "serve",
        "--port",
        "0",
        "--database",
        "sqlite:///a.db",
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_answers_and_stops_cleanly(number: signal.Signals) -> None:
    process = start("--watch", "gone=http://127.0.0.1:9", "--scrape-interval-seconds", "0.2")
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.match(
            r"Specscope is ready: (http://127\.0\.0\.1:\d+)   watching gone\. Ctrl-C stops it\.", line
        )
        assert found, line
        assert httpx.get(f"{found[1]}/readyz", timeout=120).json()["ready"] is True
        assert httpx.get(f"{found[1]}/api/v1/openapi.json", timeout=120).status_code == 200
    finally:
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out == ""
    assert "Traceback" not in err


def test_without_targets_it_serves_what_the_database_holds() -> None:
    process = start()
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert "watching nothing (no --watch): it shows what the database holds" in line
    assert process.returncode == 0


def test_a_port_in_use_is_named_with_the_remedy(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", str(taken)]) == 2
    error = capsys.readouterr().err
    assert f"--port {taken}: cannot listen there" in error
    assert "choose another --port" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "no token is set: set SPECSCOPE_TOKEN"),
        (["--port", "http"], "setting port"),
        (["--watch", "ftp://gpu1"], "--watch"),
        (["--watch", "http://gpu1:1", "--watch", "http://gpu1:1"], "two targets have this name"),
        (["--config", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["--log-level", "loud"], "setting log_level"),
    ],
)
def test_wrong_settings_are_usage_errors(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_an_unreadable_certificate_authority_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text("no certificate")
    arguments = ["--port", "0", "--database", f"sqlite:///{tmp_path}/a.db", "--watch", "https://gpu1:30000"]
    assert main([*arguments, "--ca-file", str(certificate)]) == 2
    assert str(certificate) in capsys.readouterr().err


@pytest.mark.parametrize("url", ["sqlite:///nowhere/a.db", "mysql://a", "nonsense"])
def test_an_unusable_database_is_a_failure_in_words(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "0", "--database", url]) == 1
    assert "specscope serve: the database" in capsys.readouterr().err


def test_an_unknown_flag_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--prot", "1"]) == 2
    assert "--prot" in capsys.readouterr().err


def test_help_names_every_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "--scrape-interval-seconds" in shown
    assert "--no-tls-verify" in shown
    assert "--token" not in shown


def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    with pytest.raises(InvalidInput, match=r"--host 192\.0\.2\.1 --port 0: cannot listen there"):
        listen("192.0.2.1", 0)


def test_the_greeting_names_an_address_that_a_browser_can_open() -> None:
    with listen("0.0.0.0", 0) as listener:
        line = greeting(Settings(), CollectPlan(), listener)
    assert re.search(r"http://127\.0\.0\.1:\d+ ", line)


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert (
            listener.proto == socket.IPPROTO_TCP
        )  # asyncio turns Nagle's algorithm off for such sockets only
