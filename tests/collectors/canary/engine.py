"""A far side that answers `/generate` as an engine does, with counts that a test chooses."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Engine:
    """What the engine does, and what it was asked."""

    port: int = 0
    status: int = 200
    model: str = "m1"
    """Changes every output."""
    body: bytes | None = None
    asked: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    """(path, body, authorization)."""

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        """Return 20 cycles with one accepted draft each, and an output that depends on the prompt."""
        if self.body is not None:
            return self.body
        given = body.get("text") or body.get("input_ids") or body.get("prompt")
        text = hashlib.sha256(f"{self.model}{given}".encode()).hexdigest()
        if path == "/v1/completions":
            return json.dumps({"id": "cmpl-1", "choices": [{"text": text}], "usage": {}}).encode()
        meta = {
            "id": "r1", "finish_reason": {"type": "length"}, "completion_tokens": 41, "e2e_latency": 0.25,
            "spec_verify_ct": 20, "spec_num_correct_drafts": 20, "spec_num_proposed_drafts": 60,
            "spec_correct_drafts_histogram": [0, 20, 0, 0],
        }  # fmt: skip
        return json.dumps({"text": text, "output_ids": list(text.encode()), "meta_info": meta}).encode()


@contextmanager
def answering(engine: Engine) -> Iterator[Engine]:
    """Run the engine on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            engine.asked.append((self.path, body, self.headers.get("authorization", "")))
            content = engine.answer(self.path, body)
            self.send_response(engine.status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    engine.port = server.server_port
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
