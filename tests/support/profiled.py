"""The far side of a capture: answers ``/start_profile`` like SGLang, and writes a trace where it is told."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "collectors" / "traces" / "fixtures"
RECORDED = FIXTURES / "1795986432.4661407-TP-0.trace.json.gz"


@dataclass
class FarSide:
    """An engine that answers /start_profile and then writes a trace into the folder that it is told."""

    url: str = ""
    status: int = 200
    writes_itself: bool = True
    """Else `write` does, when the test says so."""
    asked: list[tuple[dict[str, Any], str | None]] = field(default_factory=list)

    def write(self) -> None:
        """Write the trace that was asked for last."""
        shutil.copy(RECORDED, self.asked[-1][0]["output_dir"])


@contextmanager
def profiled_engine() -> Iterator[FarSide]:
    """Let one listen."""
    far = FarSide()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            far.asked.append((body, self.headers.get("authorization")))
            if far.status == 200 and far.writes_itself and "output_dir" in body:
                far.write()
            self.send_response(far.status if self.path == "/start_profile" else 404)
            self.end_headers()
            good, bad = b"Start profiling.", b"Profiling is already in progress."
            self.wfile.write(good if far.status == 200 else bad)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    far.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield far
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
