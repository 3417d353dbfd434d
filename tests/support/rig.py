"""Fixtures that run a real SGLang with EAGLE-3 on the CPU (see `tests/sglang_cpu`).

`shared_rig` is one server for all tests that only send requests or read; `rig` starts servers of a
test's own, which it may restart or stop. Mark the tests with ``rig`` and ``xdist_group("rig")``: one
process runs them all.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from tests.sglang_cpu import environment, install
from tests.sglang_cpu.install import Rig, RigMissingError
from tests.support.nursery import Forked, nursery

READY_SECONDS = 300.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.2
LOG_TAIL_CHARACTERS = 4000

Answer = dict[str, Any]
Process = subprocess.Popen[bytes] | Forked


@dataclass(frozen=True, slots=True)
class Request:
    """One greedy request; the end-of-sequence token does not stop it, so its length is known."""

    text: str
    max_new_tokens: int


@dataclass
class RunningRig:
    """A running engine. Only `start`, `stop` and `restart` change it."""

    rig: Rig
    log_path: Path
    algorithm: str
    num_steps: int
    extra: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """More environment variables; ``PYTHONPATH`` goes in front of the rig's own."""
    target: Path | None = None
    """Another model than the tiny one."""
    draft: Path | None = None
    """The draft of that model."""
    sglang: Path | None = None
    """The folder of another version of SGLang."""
    from_nothing: bool = False
    """Start it as a user does: each of its processes imports all of SGLang, which takes half a minute."""
    export_folder: Path | None = None
    """Where it writes a line for each finished request."""
    port: int = field(default_factory=lambda: free_port())
    process: Process | None = None

    @property
    def base_url(self) -> str:
        """Where the engine answers; the same after a restart."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the engine and wait until it takes requests. Raises RuntimeError with the end of its log."""
        if self.from_nothing:
            command = [str(self.rig.python), str(environment.HERE / "launch.py"), *self.arguments()]
            self.process = launch(command, self.log_path, self.all_variables())
        else:
            self.process = nursery(self.rig.python, self.sglang, self.variables).start(
                self.arguments(), self.all_variables(), self.log_path
            )
        wait_until_ready(self.base_url, self.process, self.log_path)

    def all_variables(self) -> dict[str, str]:
        """Return all variables of the engine."""
        own = environment.serving_environment()
        paths = [self.sglang, self.variables.get("PYTHONPATH"), own["PYTHONPATH"]]
        return (
            own | dict(self.variables) | {"PYTHONPATH": os.pathsep.join(str(path) for path in paths if path)}
        )

    def arguments(self) -> list[str]:
        """Return the command line of SGLang's server."""
        target = self.target or self.rig.models / "tiny-target"
        draft = self.draft or self.rig.models / "tiny-eagle3"
        return [
            *("--model-path", str(target), "--host", "127.0.0.1", "--port", str(self.port)),
            *("--device", "cpu", "--dtype", "bfloat16"),
            *("--attention-backend", "intel_amx", "--sampling-backend", "pytorch"),
            *("--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled"),
            *("--disable-radix-cache", "--disable-overlap-schedule", "--sleep-on-idle"),
            *("--max-total-tokens", "8192", "--max-running-requests", "8", "--decode-log-interval", "5"),
            "--enable-metrics",
            *speculation(self.algorithm, draft, target, self.num_steps),
            *self.extra,
        ]

    def stop(self) -> None:
        """Stop the engine and every process that it started; nothing happens when it does not run."""
        if self.process is not None:
            end_group(self.process)
            self.process = None

    def restart(self, num_steps: int | None = None) -> None:
        """Stop and start again at the same address, with another draft depth if one is given."""
        self.stop()
        self.num_steps = self.num_steps if num_steps is None else num_steps
        self.start()

    def generate(self, requests: Sequence[Request], concurrency: int = 1) -> list[Answer]:
        """Send greedy requests, at most `concurrency` at a time, and return the answers in the same order."""
        with httpx.Client(base_url=self.base_url, timeout=120.0) as client:

            def ask(request: Request) -> Answer:
                sampling = {"temperature": 0, "max_new_tokens": request.max_new_tokens, "ignore_eos": True}
                body = {"text": request.text, "sampling_params": sampling}
                answer: Answer = client.post("/generate", json=body).raise_for_status().json()
                return answer

            with ThreadPoolExecutor(concurrency) as pool:
                return list(pool.map(ask, requests))


def speculation(algorithm: str, draft: Path, target: Path, num_steps: int) -> list[str]:
    """Return SGLang's arguments for `none`, a chain or a tree of EAGLE-3 drafts, or another kind of draft.

    `standalone` drafts with the target itself, so every draft is right.
    """
    chain = [
        *("--speculative-num-steps", str(num_steps), "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(num_steps + 1)),
    ]
    tree = ["--speculative-num-steps", str(num_steps), "--speculative-eagle-topk", "4"]
    known = {
        "none": [],
        "eagle3": ["EAGLE3", "--speculative-draft-model-path", str(draft), *chain],
        "eagle3-tree": [
            *("EAGLE3", "--speculative-draft-model-path", str(draft)),
            *(*tree, "--speculative-num-draft-tokens", "8"),
        ],
        "standalone": ["STANDALONE", "--speculative-draft-model-path", str(target), *chain],
        "ngram": ["NGRAM", "--speculative-num-draft-tokens", "8"],
    }
    if algorithm not in known:
        raise ValueError(f"the rig does not know {algorithm!r}; use one of {', '.join(known)}")
    return ["--speculative-algorithm", *known[algorithm]] if known[algorithm] else []


def free_port() -> int:
    """Return a TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def launch(command: list[str], log_path: Path, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the engine in a process group of its own, its output going into the log."""
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,
        )


def wait_until_ready(base_url: str, process: Process, log_path: Path) -> None:
    """Return when the engine takes requests; asks only pages that run no generation."""
    deadline = time.monotonic() + READY_SECONDS
    while not answers(base_url):
        if (status := process.poll()) is not None:
            raise RuntimeError(f"the engine ended, status: {status}\n{log_tail(log_path)}")
        if time.monotonic() > deadline:
            end_group(process)
            raise RuntimeError(f"the engine was not ready after {READY_SECONDS:.0f} s\n{log_tail(log_path)}")
        time.sleep(POLL_SECONDS)


def answers(base_url: str) -> bool:
    """Return whether the engine says that it is ready."""
    try:
        pages = [httpx.get(base_url + path, timeout=5.0) for path in ("/model_info", "/ready")]
    except httpx.HTTPError:
        return False
    return all(page.status_code == httpx.codes.OK for page in pages)


def log_tail(log_path: Path) -> str:
    """Return the end of the engine's log."""
    text = log_path.read_text(encoding="utf-8", errors="replace")
    return f"…{text[-LOG_TAIL_CHARACTERS:]}\n(whole log: {log_path})"


def end_group(process: Process) -> None:
    """End the engine and the schedulers that it spawned, at once: SGLang takes six seconds to say goodbye."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)


class RigFactory(Protocol):
    """Starts an engine that ends with the test."""

    def __call__(
        self, algorithm: str = "eagle3", num_steps: int = 3, extra: Sequence[str] = ()
    ) -> RunningRig: ...


@pytest.fixture(scope="session")
def installed_rig() -> Rig:
    """The rig's environment and models, installed on first use; skipped with a reason, or failed in CI."""
    try:
        return install.ensure()
    except RigMissingError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"no SGLang for the tests: {reason}")
        pytest.skip(f"no SGLang for the tests: {reason}")


@pytest.fixture(scope="session")
def shared_rig(installed_rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRig]:
    """One EAGLE-3 engine with K = 3 for all tests; send requests and read, change nothing else.

    It exports what each request did, and prints a Decode line for every cycle.
    """
    folder = tmp_path_factory.mktemp("rig")
    export = ("--export-metrics-to-file", "--export-metrics-to-file-dir", str(folder / "export"))
    extra = (*export, "--decode-log-interval", "1")
    running = RunningRig(
        installed_rig, folder / "engine.log", "eagle3", 3, extra, export_folder=folder / "export"
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def rig(installed_rig: Rig, tmp_path: Path) -> Iterator[RigFactory]:
    """Start engines of this test's own: `rig(algorithm="eagle3", num_steps=3, extra=[])`."""
    started: list[RunningRig] = []

    def start(algorithm: str = "eagle3", num_steps: int = 3, extra: Sequence[str] = ()) -> RunningRig:
        log_path = tmp_path / f"engine-{len(started)}.log"
        running = RunningRig(installed_rig, log_path, algorithm, num_steps, extra)
        started.append(running)
        running.start()
        return running

    yield start
    for running in started:
        running.stop()
