"""The reporter against a real HTTP server: it sends, sends again, drops and counts, and never raises."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.collectors.requests.captured import WORKED, document, lines

from specscope_collectors.report import Reporter

DEADLINE_SECONDS = 60.0


class Far:
    """The far side: answers with these statuses in turn, then 200, and keeps what it got."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.got: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str | None]] = []
        self.gate = threading.Event()
        self.gate.set()

    def answer(self, path: str, token: str | None, body: bytes) -> tuple[int, bytes]:
        """Return status and body."""
        self.gate.wait(DEADLINE_SECONDS)
        self.asked.append((path, token))
        status = self.statuses.pop(0) if self.statuses else 200
        items = json.loads(body)
        if status == 200:
            self.got += items
        receipt = {"accepted": len(items), "duplicates": 0, "refused_total": 0, "refused": []}
        return status, json.dumps(receipt if status == 200 else {"detail": "busy"}).encode()


@pytest.fixture
def far() -> Iterator[tuple[Far, str]]:
    """A listening far side and its address."""
    side = Far()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, content = side.answer(self.path, self.headers.get("authorization"), body)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield side, f"http://127.0.0.1:{server.server_port}"
    finally:
        side.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


def until(look: Callable[[], bool]) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_counts_arrive_and_texts_do_not(far: tuple[Far, str]) -> None:
    side, url = far
    answers = [*lines("generate-eagle3-0.5.23.ndjson"), document("chat-sglext-n2-0.5.23.json")]
    with Reporter(url, "gpu1:30000", token="secret") as reporter:
        for answer in answers:
            reporter.report(answer, labels={"tenant": "a"})
        assert reporter.flush()
    assert (reporter.sent, reporter.refused, reporter.dropped) == (22, 0, 0)
    assert [item["labels"] for item in side.got] == [{"tenant": "a"}] * 22
    assert sum(item["spec_verify_ct"] for item in side.got) == 317 + 30
    assert not any("text" in item or "output_ids" in item for item in side.got)
    path, token = side.asked[0]
    assert path == "/api/v1/requests?server=gpu1%3A30000&create=false"
    assert token == "Bearer secret"


def test_what_failed_is_sent_again_in_order(far: tuple[Far, str]) -> None:
    side, url = far
    side.statuses = [503, 500]
    with Reporter(url, "a") as reporter:
        for name in "xyz":
            reporter.report({"meta_info": {**WORKED["meta_info"], "id": name}})
        assert reporter.flush(DEADLINE_SECONDS)
    assert [item["id"] for item in side.got] == ["x", "y", "z"]
    assert (reporter.sent, reporter.dropped) == (3, 0)
    assert len(side.asked) == 3


def test_what_will_never_be_taken_is_dropped_with_a_word(far: tuple[Far, str]) -> None:
    side, url = far
    side.statuses = [404]
    with Reporter(url, "nobody") as reporter:
        reporter.report(WORKED)
        assert reporter.flush()
    assert (reporter.sent, reporter.dropped) == (0, 1)
    assert reporter.problem.startswith("HTTP 404")


def test_the_queue_is_bounded_and_says_what_it_lost(far: tuple[Far, str]) -> None:
    side, url = far
    side.gate.clear()
    reporter = Reporter(url, "a", queue=5)
    for _ in range(20):
        reporter.report(WORKED)
    assert reporter.dropped >= 10
    side.gate.set()
    assert reporter.flush()
    reporter.close()
    assert reporter.sent + reporter.dropped == 20
    reporter.report(WORKED)
    assert reporter.sent + reporter.dropped == 21


def test_a_full_queue_is_sent_without_waiting(far: tuple[Far, str]) -> None:
    side, url = far
    with Reporter(url, "a") as reporter:
        reporter.report([{"meta_info": {**WORKED["meta_info"], "id": str(i)}} for i in range(1_200)])
        until(lambda: len(side.got) >= 1_000)
    assert len(side.got) == 1_200
    assert len(side.asked) == 3


def test_nothing_is_raised_into_the_script() -> None:
    reporter = Reporter("http://127.0.0.1:9", "a")
    for wrong in (None, "text", {}, {"choices": 3}, [WORKED, {"error": 1}]):
        reporter.report(wrong)
    reporter.report(WORKED, labels={"bad name": "x"})
    assert (reporter.refused, reporter.dropped) == (6, 0)
    reporter.close(timeout_seconds=0.2)
    reporter.close()
    assert reporter.dropped == 1
    assert reporter.problem


def test_an_answer_without_a_time_gets_the_time_of_the_report(far: tuple[Far, str]) -> None:
    side, url = far
    before = time.time()
    with Reporter(url, "a") as reporter:
        reporter.report(WORKED)
        reporter.report({"meta_info": {**WORKED["meta_info"], "request_finished_ts": 5.0}})
    assert before <= side.got[0]["created"] <= time.time()
    assert "created" not in side.got[1]
