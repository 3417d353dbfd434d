"""`specscope collect` as it is run: it needs no server package, explains wrong usage, shows its status."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import httpx
import msgspec
import pytest
import structlog
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from prometheus_client import CollectorRegistry, generate_latest
from tests.support.rig import free_port

from specscope_collectors.cli.collect import main, show_status
from specscope_collectors.push_status import PushStatus, StatusMetrics, words_of, write_status
from specscope_collectors.watching import targets_here

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """The command sets up logging for its process, which is that of the other tests here."""
    yield
    structlog.reset_defaults()


WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in set(sys.argv[1:]):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import specscope_collectors.cli.collect as collect
from specscope_collectors.discoveries import discovery_kinds
from specscope_collectors.jobs import job_kinds

assert job_kinds() and discovery_kinds()
sys.exit(collect.main(["--help"]))
"""


def test_it_needs_what_its_extra_brings_and_no_more() -> None:
    """All kinds of jobs and discoveries are loaded, as a file would have it; nothing else is installed."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    there = brought_by(document["project"]["optional-dependencies"]["collectors"]) | {"specscope"}
    absent = [
        module
        for module, names in packages_distributions().items()
        if not there & {canonical(name) for name in names}
    ]
    assert {"numpy", "fastapi", "sqlalchemy", "plotly"} <= set(absent)
    command = [sys.executable, "-c", WITHOUT, "specscope_server", *absent]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "--spool" in found.stdout


def brought_by(texts: list[str]) -> set[str]:
    """Return all distributions that these requirements bring, here."""
    found: set[str] = set()
    for requirement in map(Requirement, texts):
        name = canonical(requirement.name)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found |= {name} | brought_by(requires(name) or [])
    return found


def canonical(name: str) -> str:
    return str(canonicalize_name(name))


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "--server is missing"),
        (["--server", "http://127.0.0.1:1"], 2, "nothing to collect: name servers with --watch URL"),
        (["--server", "gpu", "--watch", "a:1"], 2, "not the URL of a Specscope"),
        (["--server", "http://a", "--watch", "a b"], 2, "two targets"),
        (["--server", "http://a", "--watch", "ftp://x"], 2, "cannot be watched"),
        (["--server", "http://a", "--config", "missing.toml"], 2, "missing.toml cannot be read"),
        (
            ["--server", "http://a", "--watch", "a:1", "--token-file", "missing"],
            2,
            "token file missing cannot",
        ),
        (["--server", "http://a", "--watch", "a:1", "--spool", "/dev/null/x"], 1, "cannot be written"),
        (
            ["--server", "http://a", "--watch", "a:1", "--server-ca-file", "none.pem"],
            2,
            "--ca-file 'none.pem'",
        ),
        (["--server", "http://a", "--watch", "a:1", "--spool-max-bytes", "5"], 2, "Invalid value"),
        (["--status", "--spool", "nowhere"], 1, "no status in nowhere"),
    ],
)
def test_what_cannot_be_meant_is_explained(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if words == "two targets":
        words = "two targets have this name"
        arguments[-1] = "a:1 a:1"
    assert main(arguments) == status
    assert words in " ".join(capsys.readouterr().err.split())


def test_loopback_is_named_after_the_host() -> None:
    texts = [
        "127.0.0.1:30000",
        "http://localhost:1/x",
        "mine=http://127.0.0.1:2",
        "http://[::1]:3",
        "gpu1:30000",
    ]
    assert [target.name for target in targets_here(texts, "host7")] == [
        "host7:30000", "host7:1/x", "mine", "host7:3", "gpu1:30000",
    ]  # fmt: skip


STATUS = PushStatus(
    time_ms=1_000, pid=0, server="http://a", state="waiting", problem="HTTP 503", waiting=3,
    spool_bytes=2_000_000, oldest_seconds=61, sent=9, repeated=1, dropped=4, in_memory=2,
    spool_problem="No space left",
)  # fmt: skip


def test_the_status_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert words_of(STATUS, 11_000) == [
        "process   does not run (pid 0), status 10 s old",
        "server    http://a: waiting (HTTP 503)",
        "waiting   3 batches, 2.0 MB on disk, the oldest 61 s old",
        "sent      9 batches (1 of them again)",
        "trouble   4 dropped, 2 in memory; No space left",
    ]
    write_status(tmp_path, STATUS)
    assert show_status(tmp_path) == 1
    write_status(tmp_path, PushStatus(state="ok"))
    assert show_status(tmp_path) == 0
    (tmp_path / "status.json").write_bytes(b"{")
    assert show_status(tmp_path) == 1
    assert "is damaged" in capsys.readouterr().err


def test_the_status_as_metrics() -> None:
    class Source:
        def status(self) -> PushStatus:
            return msgspec.structs.replace(STATUS, state="ok")

    registry = CollectorRegistry()
    registry.register(StatusMetrics(Source()))
    shown = generate_latest(registry).decode()
    for line in (
        "specscope_push_up 1.0", "specscope_push_waiting 3.0", "specscope_push_spool_bytes 2e+06",
        "specscope_push_oldest_seconds 61.0", "specscope_push_sent_total 9.0",
        "specscope_push_dropped_total 4.0",
    ):  # fmt: skip
        assert line in shown


def test_metrics_are_served_when_asked_for(tmp_path: Path) -> None:
    port = free_port()
    command = [
        sys.executable, "-m", "specscope", "collect", "--watch", "127.0.0.1:1", "--server", "http://127.0.0.1:2",
        "--spool", str(tmp_path / "spool"), "--metrics-port", str(port), "--flush-seconds", "0",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "Ctrl-C stops it" in process.stdout.readline()
        shown = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
        process.terminate()
        assert process.wait(20) == 0
    assert "specscope_push_up 0.0" in shown
