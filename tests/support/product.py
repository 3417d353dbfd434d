"""The product as a user runs it: a `specscope serve` process on a SQLite file, read through its API."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.support.rig import free_port, log_tail

START_SECONDS = 120.0
SETTLE_SECONDS = 120.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.2
SCRAPE_SECONDS = 0.5

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Product:
    """A running server and what it is asked."""

    base_url: str
    process: subprocess.Popen[bytes]
    log_path: Path

    def get(self, path: str, **parameters: Any) -> Document:
        """Return a JSON document of the API."""
        answer = httpx.get(f"{self.base_url}/api/v1{path}", params=parameters, timeout=30.0)
        assert answer.status_code == httpx.codes.OK, f"{answer.url}: {answer.text}"
        document: Document = answer.json()
        return document

    def wait_for(self, what: str, look: Callable[[], Any], seconds: float = SETTLE_SECONDS) -> Any:
        """Look until the answer is true-ish and return it; fail with the product's log after the deadline."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            assert self.process.poll() is None, f"the server ended\n{log_tail(self.log_path)}"
            assert time.monotonic() < deadline, f"no {what} after {seconds} s\n{log_tail(self.log_path)}"
            time.sleep(POLL_SECONDS)
        return found

    def source_state(self, server: str, source: str = "sglang_metrics") -> str | None:
        """Return the state of one source of a watched server; None before its first outcome."""
        shown = httpx.get(f"{self.base_url}/api/v1/sources", params={"server": server}, timeout=30.0)
        if shown.status_code == httpx.codes.NOT_FOUND:
            return None
        states = {s["source"]: s["state"] for entry in shown.json()["servers"] for s in entry["sources"]}
        return states.get(source)

    def has_read(self, server: str) -> bool:
        """Return whether the newest scrape of a server's metrics was read.

        "partial" counts: the rig reads the memory of its weights off the machine's free memory, and while
        other processes end that is negative, which is refused. All else is read.
        """
        return self.source_state(server) in ("ok", "partial")

    def summary(self, server: str, **parameters: Any) -> Document:
        """Return the acceptance of everything that was seen so far."""
        return self.get("/acceptance/summary", server=server, **{"from": "now-1h", "to": "now"}, **parameters)


@contextmanager
def serving(folder: Path, watched: dict[str, str], *options: str) -> Iterator[Product]:
    """Serve with an empty database, watching servers by name; Ctrl-C at the end must stop it cleanly."""
    port, log_path = free_port(), folder / "serve.log"
    command = [sys.executable, "-m", "specscope", "serve", "--port", str(port)]
    command += ["--database", f"sqlite:///{folder / 'specscope.db'}"]
    command += ["--scrape-interval-seconds", str(SCRAPE_SECONDS), "--info-interval-seconds", "5"]
    for name, url in watched.items():
        command += ["--watch", f"{name}={url}"]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [*command, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder
        )
    product = Product(f"http://127.0.0.1:{port}", process, log_path)
    try:
        product.wait_for("answer of /readyz", lambda: is_ready(product.base_url), START_SECONDS)
        yield product
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_SECONDS) == 0, log_tail(log_path)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def is_ready(base_url: str) -> bool:
    """Return whether the server says that it can answer."""
    try:
        return httpx.get(f"{base_url}/readyz", timeout=5.0).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
