"""The collectors' file in the real commands: read, followed, refused, and gone on with after a kill."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.collectors.fetch.servers import Server, serving
from tests.collectors.runner.engine import Engine

from specscope_server.cli import doctor

DEADLINE_SECONDS = 60.0
OPTIONS = "name = 'here'\n[options]\nscrape_interval_seconds = 0.2\nscrape_timeout_seconds = 2\n"


def wait_for(look: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """Poll until what is seen is right; fail at the deadline with what was seen last."""
    end = time.monotonic() + DEADLINE_SECONDS
    while True:
        seen = look()
        if is_right(seen):
            return seen
        assert time.monotonic() < end, seen
        time.sleep(0.05)


class Product:
    """`specscope serve --collect FILE` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "collect.toml"
        self._folder = folder
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def write(self, text: str) -> None:
        fresh = self._folder / "collect.new"
        fresh.write_text(OPTIONS + text)
        fresh.rename(self.file)

    def start(self) -> None:
        command = [sys.executable, "-m", "specscope", "serve", "--port", "0", "--database", "sqlite:///a.db"]
        self.process = subprocess.Popen(
            [*command, "--collect", str(self.file)], stdout=subprocess.PIPE, text=True, cwd=self._folder
        )
        assert self.process.stdout is not None
        found = None
        for line in self.process.stdout:
            found = re.match(r"Specscope is ready: (\S+)   watching .*what .*collect\.toml says", line)
            if found:
                break
        assert found is not None
        self.url = found[1]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def api(self, path: str) -> Any:
        return httpx.get(f"{self.url}/api/v1{path}", timeout=10).raise_for_status().json()

    def states(self) -> dict[str, str]:
        return {entry["name"]: entry["state"] for entry in self.api("/servers")["servers"]}

    def own(self) -> dict[str, str]:
        listing = self.api("/sources")["servers"]
        return {
            each["source"]: each["state"]
            for entry in listing
            if entry["is_collector"]
            for each in entry["sources"]
        }


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    made = Product(tmp_path)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.end(signal.SIGKILL)


@pytest.fixture
def engines() -> Iterator[tuple[Server, Server]]:
    with serving(Engine()) as one, serving(Engine()) as two:
        yield one, two


def name_of(server: Server) -> str:
    return server.url.partition("//")[2]


def named(name: str, server: Server) -> str:
    return f"[[target]]\nurl = '{server.url}'\nname = '{name}'\n"


def test_the_file_is_followed_through_errors_and_a_kill(
    product: Product, engines: tuple[Server, Server]
) -> None:
    one, two = engines
    product.write(named("one", one))
    product.start()
    wait_for(product.states, lambda states: set(states) == {"one"} and states["one"] in ("ok", "partial"))

    product.write(named("one", one) + named("two", two))
    wait_for(product.states, lambda states: states.get("two") in ("ok", "partial"))

    product.write("[[target]]\nurl = 7\n")
    wait_for(product.own, lambda own: own["collect_file"] == "invalid")
    assert product.states()["one"] in ("ok", "partial")

    product.write(named("two", two))
    assert product.process is not None
    product.process.send_signal(signal.SIGHUP)
    wait_for(product.states, lambda states: states["one"] == "gone")
    wait_for(product.own, lambda own: own["collect_file"] == "ok")

    product.end(signal.SIGKILL)
    launches = len(one.paths())
    product.write(named("one", one) + named("two", two))
    product.start()
    wait_for(
        product.states, lambda states: states["one"] in ("ok", "partial") and len(one.paths()) > launches
    )
    assert len(product.api("/servers/one/launches")["launches"]) == 1  # the same launch goes on
    assert product.end() == 0


def test_a_discovery_goes_on_with_its_last_list_after_a_kill(
    product: Product, engines: tuple[Server, Server], tmp_path: Path
) -> None:
    one, two = engines
    listing = tmp_path / "targets.json"
    listing.write_text(json.dumps([{"targets": [name_of(one), name_of(two)], "labels": {"rack": "r7"}}]))
    product.write(f"[[discover]]\nkind = 'file_sd'\nfiles = ['{listing}']\ninterval_seconds = 1\n")
    product.start()
    wait_for(product.states, lambda states: set(states) == {name_of(one), name_of(two)})
    wait_for(lambda: product.api(f"/servers/{name_of(one)}/launches")["launches"], bool)
    (launch,) = product.api(f"/servers/{name_of(one)}/launches")["launches"]
    assert product.api(f"/launches/{launch['id']}")["config"]["target_labels"] == {"rack": "r7"}

    product.end(signal.SIGKILL)
    listing.unlink()
    asked = len(two.paths())
    product.start()
    wait_for(lambda: len(two.paths()), lambda count: count > asked + 2)
    own = wait_for(product.own, lambda own: own.get(f"discover_file_sd:{listing}") == "unreachable")
    assert own["collect_file"] == "ok"
    assert product.end() == 0


@pytest.mark.parametrize("command", [["serve", "--collect"], ["collect", "--server", "http://x", "--config"]])
def test_a_wrong_file_is_a_usage_error_with_all_reasons(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[option]\n[[target]]\nurll = 'x'\n")
    found = subprocess.run(
        [sys.executable, "-m", "specscope", *command, str(path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert found.returncode == 2
    assert "no table 'option'. Did you mean 'options'?" in found.stderr
    assert "no key 'urll'. Did you mean 'url'?" in found.stderr
    assert "Traceback" not in found.stderr


def test_check_prints_what_would_be_collected(tmp_path: Path, engines: tuple[Server, Server]) -> None:
    path = tmp_path / "c.toml"
    static = f"[[discover]]\nkind = 'static'\ntargets = ['{engines[1].url}']\nlabels = {{ rack = 'r1' }}\n"
    path.write_text(named("one", engines[0]) + static)
    command = [sys.executable, "-m", "specscope", "collect", "--config", str(path), "--check"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("2 servers\n")
    assert f"  one  {engines[0].url}  (every 5 s)" in found.stdout
    assert "rack=r1" in found.stdout
    assert engines[0].requests == []  # nothing was collected
    path.write_text("[[discover]]\nkind = 'file_sd'\nfiles = ['none.json']\n")
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 1
    assert "no file matches none.json" in found.stdout


def test_doctor_looks_at_what_the_file_names(
    tmp_path: Path, engines: tuple[Server, Server], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.toml"
    listing = tmp_path / "none.json"
    static = f"[[discover]]\nkind = 'static'\ntargets = ['{engines[1].url}']\n"
    path.write_text(named("one", engines[0]) + static)
    assert doctor.main(["--config", str(path), "--format", "json"]) in (0, 1)
    found = {each["target"]: each for each in json.loads(capsys.readouterr().out)}
    assert {"one", name_of(engines[1])} < set(found)
    assert found[f"discover_static:{engines[1].url}"]["findings"] == [
        {"grade": "ok", "subject": "list", "words": "1 server"}
    ]
    path.write_text(f"[[discover]]\nkind = 'file_sd'\nfiles = ['{listing}']\n")
    assert doctor.main(["--config", str(path)]) == 2
    assert f"no file matches {listing}" in capsys.readouterr().out
    path.write_text("[[target]]")
    assert doctor.main(["--config", str(path)]) == 2
    assert "the key 'url' is missing" in capsys.readouterr().err
