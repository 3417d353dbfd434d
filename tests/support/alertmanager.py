"""A real Alertmanager, with a webhook receiver that listens to what it passes on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.support.needs import need
from tests.support.rig import free_port, log_tail

START_SECONDS = 120.0
POLL_SECONDS = 0.1
CONFIG = """
route:
  {{receiver: told, group_by: [alertname], group_wait: 100ms, group_interval: 500ms, repeat_interval: 1h}}
receivers: [{{name: told, webhook_configs: [{{url: "{url}", send_resolved: true}}]}}]
"""


@contextmanager
def running_alertmanager(folder: Path, webhook_url: str) -> Iterator[str]:
    """Start an Alertmanager that tells ``webhook_url``; yield its address."""
    need("prometheus-alertmanager", "prometheus-alertmanager")
    config, port = folder / "alertmanager.yml", free_port()
    config.write_text(CONFIG.format(url=webhook_url))
    url = f"http://127.0.0.1:{port}"
    command = [
        "prometheus-alertmanager", f"--config.file={config}", f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    ]  # fmt: skip
    with (folder / "alertmanager.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: _is_ready(url, process, folder), START_SECONDS)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _is_ready(url: str, process: subprocess.Popen[bytes], folder: Path) -> bool:
    assert process.poll() is None, log_tail(folder / "alertmanager.log")
    try:
        return httpx.get(f"{url}/-/ready", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def alerts_of(url: str) -> list[dict[str, Any]]:
    """Return the alerts that are active there."""
    found: list[dict[str, Any]] = httpx.get(f"{url}/api/v2/alerts", trust_env=False).json()
    return found


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for a real process to do what it must."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(POLL_SECONDS)
