"""A real server on a real socket, and a browser that reports everything that must not happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
import uvicorn
from fastapi import FastAPI
from sqlalchemy import Engine, update
from tests.server.seed import Feed

from specscope_collectors.observations import HealthState, Level
from specscope_server.app import create_app
from specscope_server.kit.clock import system_clock
from specscope_server.models import Server
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

SCREENSHOTS = Path(__file__).resolve().parents[2] / "test-artefacts" / "screenshots"
START_SECONDS = 120.0
PATIENCE_MS = 120_000.0
"""How long something may take to appear on a page; much, for machines that are busy."""
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
HOSTILE = '<img src=x onerror="window.ran=1"></script><script>window.ran=1</script>'
HOSTILE_LONG = HOSTILE + "\u202e\u05d0\u05d1\u05d2" + "y" * 5_000


@pytest.fixture(autouse=True, scope="session")
def _plain_logs() -> None:
    """Render log entries as plain text: rich tracebacks of failing requests take half a minute."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """Serve an application from a thread on a free port; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert thread.is_alive(), "the server ended while starting"
        assert time.monotonic() < deadline, f"the server did not start within {START_SECONDS} s"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


def seed(engine: Engine, server: str = "gpu1:30000", **launch: Any) -> None:
    """Write 25 minutes up to now: active, idle in the middle, a gap, then a launch with another depth."""
    now = system_clock() // 5_000 * 5_000
    feed = Feed(IngestWriter(engine), server)
    busy = {"rate": 0.5, "width": 4, "depth": 3, "running": 3, "queued": 1, "throughput": 80}
    feed.launch("a1", now - 1_500_000, **{"engine_version": "0.5.8", "config": {"steps": 3}, **launch})
    feed.scrapes(120, now - 1_500_000, tau=2.0, calls=40, tokens=82, finished=2, decoded=80, **busy)
    feed.scrapes(48, now - 900_000, **{**busy, "running": 0, "throughput": 0}, tau=2.0, decoded=0)
    feed.launch(
        "b2",
        now - 600_000,
        **{"engine_version": "0.5.8", "config": {"steps": 5}, "reason": "restarted", **launch},
    )
    feed.scrapes(
        120, now - 600_000, tau=2.5, calls=40, tokens=104, finished=4, decoded=100, **{**busy, "rate": 0.625}
    )
    feed.send(*(one for index in range(288) for one in _scraped(now - index * 5_000)))
    feed.health(now, http_status=200, body_bytes=90_321, series=421)
    feed.health(
        now, HealthState.DISABLED, source="sglang_loads", http_status=404, detail="/v1/loads answers 404",
        remedy="Update SGLang to 0.5.9 or later.", missing={"device time of phases": "--enable-device-timer"},
    )  # fmt: skip
    with engine.begin() as connection:  # as if watched since then: the pages show an hour by default
        connection.execute(update(Server).values(created_ms=now - 1_500_000))


def _scraped(time_ms: int) -> Iterator[Level]:
    for source, seconds in (("sglang_metrics", 0.012), ("sglang_loads", 0.004)):
        labels = {"source": source}
        is_good = float(source == "sglang_metrics")
        yield Level(metric="scrape.up", labels=labels, time_ms=time_ms, value=is_good)
        yield Level(metric="scrape.duration", labels=labels, time_ms=time_ms, value=seconds)


@dataclass
class Visit:
    """One page in one browser context, with what it did wrong."""

    page: Page
    base_url: str
    problems: list[str] = field(default_factory=list)
    """Console errors, exceptions, and requests that left the origin."""
    requests: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> Visit:
        """Open a path and wait until its scripts have started."""
        self.page.goto(self.base_url + path)
        self.page.wait_for_selector("html[data-ready]")
        return self

    def wait_for_charts(self) -> int:
        """Scroll through the page until each panel has drawn or said why not; return the number of lines."""
        for panel in self.page.query_selector_all("chart-panel"):
            panel.scroll_into_view_if_needed()
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.chart-area')].every(area => area.ariaBusy === 'false')"
        )
        return len(self.page.query_selector_all(".scatterlayer .trace"))

    def evaluate(self, script: str) -> Any:
        """Return what a script in the page says."""
        return self.page.evaluate(script)

    def shoot(self, name: str) -> Path:
        """Keep a picture of the whole page."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.page.evaluate("() => window.scrollTo(0, 0)")
        self.page.screenshot(path=path, full_page=True)
        return path


Visitor = Callable[..., Visit]


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Make visits; each has a context of its own."""
    contexts: list[BrowserContext] = []

    def visit(base_url: str, viewport: dict[str, int] = WIDE, **options: Any) -> Visit:
        context = browser.new_context(viewport=viewport, timezone_id="Asia/Kolkata", **options)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        found = Visit(context.new_page(), base_url)
        _listen(found)
        return found

    yield visit
    for context in contexts:
        context.close()


def _listen(visit: Visit) -> None:
    page = visit.page
    page.on(
        "console",
        lambda message: visit.problems.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: visit.problems.append(f"exception: {error}"))
    page.on("dialog", lambda dialog: (visit.problems.append("dialog"), dialog.dismiss()))

    def note(request: Any) -> None:
        visit.requests.append(request.url)
        if not request.url.startswith((visit.base_url, "data:", "blob:")):
            visit.problems.append(f"left the origin: {request.url[:200]}")

    page.on("request", note)


@pytest.fixture
def site(sqlite_engine: Engine) -> Iterator[str]:
    """Address of a server with one watched server's data."""
    seed(sqlite_engine)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        yield url


@pytest.fixture
def empty_site(sqlite_engine: Engine) -> Iterator[str]:
    """Address of a server that watches nothing."""
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        yield url
