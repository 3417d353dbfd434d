"""A real Prometheus on blocks of history that were written in seconds, and what it is asked to hold."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.support.needs import need
from tests.support.rig import free_port, log_tail

START_SECONDS = 120.0
POLL_SECONDS = 0.1
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$")


def need_prometheus() -> None:
    """Skip (fail in CI) where no Prometheus is installed."""
    need("prometheus", "prometheus", "promtool")


def with_labels(body: str, time_ms: int, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the samples of an exposition as a scrape at this time stores them."""
    added = ",".join(f'{name}="{value}"' for name, value in labels.items())
    for line in body.splitlines():
        match = _SAMPLE.match(line)
        if match:
            own = f"{match[2]}," if match[2] else ""
            yield f"{match[1]}{{{own}{added}}} {match[3]} {time_ms / 1000:.3f}"


def write_blocks(folder: Path, lines: Iterable[str]) -> Path:
    """Write samples in OpenMetrics form into a database folder of Prometheus; return the folder."""
    text, data = folder / "history.om", folder / "data"
    with text.open("w") as out:
        out.writelines(f"{line}\n" for line in lines)
        out.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    text.unlink()
    return data


@dataclass
class Prometheus:
    """A running server; `start` after `kill` continues on the same data and port."""

    folder: Path
    data: Path
    options: tuple[str, ...] = ()
    scrape: str = ""
    """Address that it scrapes every second; empty for none."""
    settings: str = ""
    """Its whole configuration; empty for one of these jobs."""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until it answers."""
        config = self.folder / "prometheus.yml"
        jobs = (
            f"scrape_configs:\n- job_name: sglang\n  scrape_interval: 1s\n  static_configs:\n"
            f"  - targets: ['{self.scrape}']\n"
        )
        config.write_text(self.settings or (jobs if self.scrape else "{}\n"))
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.data}"]
        command += [f"--web.listen-address=127.0.0.1:{self.port}", "--storage.tsdb.retention.time=20y"]
        with (self.folder / "prometheus.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_SECONDS
        while not _is_there(f"{self.url}/-/ready"):
            assert self.process.poll() is None, log_tail(self.folder / "prometheus.log")
            assert time.monotonic() < deadline, log_tail(self.folder / "prometheus.log")
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def ask(self, query: str, time_ms: int) -> list[dict[str, Any]]:
        """Return the result of a query."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query, "time": time_ms / 1000})
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found


@contextmanager
def running(folder: Path, lines: Iterable[str] = (), *options: str, scrape: str = "") -> Iterator[Prometheus]:
    """Run a Prometheus that holds these samples (OpenMetrics lines) until the block ends."""
    need_prometheus()
    lines = list(lines)
    data = write_blocks(folder, lines) if lines else folder / "data"
    server = Prometheus(folder, data, options, scrape)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def victoria_metrics(folder: Path, lines: Iterable[str]) -> Iterator[str]:
    """Run a VictoriaMetrics that holds these samples (OpenMetrics lines); yield its URL."""
    need("victoria-metrics", "victoria-metrics")
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = ["victoria-metrics", f"-storageDataPath={folder / 'vm'}", f"-httpListenAddr=127.0.0.1:{port}"]
    log_path = folder / "vm.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen([*command, "-retentionPeriod=10y"], stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _is_there(f"{url}/health"):
            assert time.monotonic() < deadline, log_tail(log_path)
            time.sleep(POLL_SECONDS)
        parts = (line.rpartition(" ") for line in lines)
        text = "".join(f"{sample} {round(float(seconds) * 1000)}\n" for sample, _, seconds in parts)
        with httpx.Client(timeout=60.0) as client:
            client.post(f"{url}/api/v1/import/prometheus", content=text).raise_for_status()
            client.get(f"{url}/internal/force_flush").raise_for_status()
        yield url
    finally:
        process.kill()
        process.wait()


def _is_there(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5.0).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
