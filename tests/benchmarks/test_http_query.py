"""Six hours of eight series in 600 buckets through HTTP, against the read alone in the same run."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.server.seed import SERVER, Feed, level

from specscope_server.app import create_app
from specscope_server.cli.serve import listen
from specscope_server.kit.timerange import Window
from specscope_server.settings import Settings
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.series_reader import find_series, read_buckets

HOURS, SERIES, BUCKETS, SCRAPE_MS = 6, 8, 600, 5_000
END_MS = 1_772_388_000_000  # 2026-03-01T18:00:00Z
START_MS = END_MS - HOURS * 3_600_000
STEP_MS = HOURS * 3_600_000 // BUCKETS
LIMIT_MS = 30.0
COLD_STARTS = 5
ROUNDS = 40


@pytest.fixture
def filled(sqlite_engine: Engine) -> Engine:
    """A store with eight series of one sample every five seconds for six hours."""
    feed = Feed(IngestWriter(sqlite_engine, lambda: END_MS))
    feed.launch(time_ms=START_MS)
    times = range(START_MS, END_MS, SCRAPE_MS)
    for begin in range(0, len(times), 360):
        part = times[begin : begin + 360]
        feed.send(*(level("requests.running", t % 17, t, dp=dp) for t in part for dp in range(SERIES)))
    return sqlite_engine


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve in a thread on a free port."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def timed(action: Callable[[], Any]) -> list[float]:
    """Return the milliseconds of each of many runs, after a few to warm up."""
    for _ in range(5):
        action()
    found = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        found.append((time.perf_counter() - started) * 1_000)
    return found


def ask(client: httpx.Client) -> None:
    """Ask for all series in 600 buckets, and check that nothing is missing."""
    parameters: dict[str, Any] = {
        "metric": "requests.running", "server": SERVER, "from": START_MS, "to": END_MS,
        "step": f"{STEP_MS}ms", "aggregate": "none",
    }  # fmt: skip
    answer = client.get("/api/v1/series/query", params=parameters)
    lines = answer.raise_for_status().json()["series"]
    assert (len(lines), len(lines[0]["values"])) == (SERIES, BUCKETS)
    assert None not in lines[0]["values"]


def first_query_ms(engine: Engine) -> float:
    """Return how long the first query takes after a start: no connection yet, nothing in memory.

    The file may be in the operating system's cache.
    """
    fresh = create_store_engine(engine.url.render_as_string(hide_password=False))
    app = create_app(Settings(), engine=fresh, clock=lambda: END_MS)
    with served(app) as base_url, httpx.Client(base_url=base_url, trust_env=False) as client:
        started = time.perf_counter()
        ask(client)
        found = (time.perf_counter() - started) * 1_000
    fresh.dispose()
    return found


@pytest.mark.benchmark
def test_a_query_through_http_is_fast(filled: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    window = Window(START_MS, END_MS, STEP_MS)

    def read() -> None:
        with Session(filled) as session:
            found = find_series(session, metrics=["requests.running"])
            assert len(read_buckets(session, found, window)) == SERIES

    cold = statistics.median(first_query_ms(filled) for _ in range(COLD_STARTS))
    app = create_app(Settings(), engine=filled, clock=lambda: END_MS)
    with served(app) as base_url, httpx.Client(base_url=base_url, trust_env=False) as client:
        actions = (read, lambda: client.get("/healthz"), lambda: ask(client))
        alone, empty, through_http = (statistics.median(timed(action)) for action in actions)
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{HOURS} h x {SERIES} series in {BUCKETS} buckets: {through_http:.1f} ms through HTTP, "
            f"read alone {alone:.1f} ms (ratio {through_http / alone:.1f}), empty answer {empty:.1f} ms; "
            f"first query after a start, nothing in memory: {cold:.1f} ms"
        )
    assert through_http <= LIMIT_MS
