"""The examples of the guide to sending requests run, against a real server and an engine's real answers."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.docs.pages import ROOT, blocks, commands, read

from specscope_server.cli.import_ import main

PAGE = "docs/guide/send-requests.md"
DOCUMENTED, ENGINE = "http://127.0.0.1:8200", "http://gpu1:30000"
FIXTURES = ROOT / "tests" / "collectors" / "requests" / "fixtures"


def answers() -> list[dict[str, Any]]:
    """Return real answers as of now."""
    text = (FIXTURES / "generate-eagle3-0.5.23.ndjson").read_text("utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    for each in found:
        each["meta_info"]["request_finished_ts"] = time.time()
    return found


@pytest.fixture
def engine() -> Iterator[str]:
    """An engine that gives one real answer after the other."""
    left = answers()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            content = json.dumps(left.pop(0)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(example: str, base_url: str, engine: str = ENGINE) -> None:
    """Run one example against these addresses."""
    exec(compile(example.replace(DOCUMENTED, base_url).replace(ENGINE, engine), PAGE, "exec"), {})


def test_the_python_examples_send_and_read(
    seeded_server: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    send, show = [block.text for block in blocks(read(PAGE)) if block.language == "python"]
    run(send, seeded_server, engine)
    lines = capsys.readouterr().out.splitlines()  # the server logs there, too
    assert [line for line in lines if line.startswith("2 sent, 0 refused, 0 dropped")]
    run(show, seeded_server)
    out = capsys.readouterr().out
    assert "K = 3" in out
    assert len(out.splitlines()) >= 4


def test_the_curl_example_is_taken(seeded_server: str) -> None:
    [line] = [line for line in commands(read(PAGE)) if line.startswith("curl")]
    words = shlex.split(line)
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
    [url] = [word for word in words if word.startswith("http")]
    body = json.dumps(answers()[5])
    answer = httpx.post(url.replace(DOCUMENTED, seeded_server), headers=headers, content=body, timeout=60)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 1


def test_the_import_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [line] = [line for line in commands(read(PAGE)) if line.startswith("specscope import")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECSCOPE_RETENTION_REQUESTS_DAYS", "36500")
    files = [str(path) for path in FIXTURES.glob("sglang-request-metrics-*.log")]
    words = [files if word.startswith("DIR/") else [word] for word in shlex.split(line)[2:]]
    assert files
    assert main([word for group in words for word in group]) == 0
    assert (tmp_path / "specscope.db").stat().st_size > 0
