"""Each page in a real Chromium over live data: a real SGLang on the CPU, and `specscope demo`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.browser.conftest import Visit, Visitor
from tests.support.product import Document, Product, is_ready, serving
from tests.support.rig import Request, RunningRig, free_port

PAGES = {
    "/": {"accept-length", "draft-acceptance", "throughput", "load"},
    "/acceptance": {"accept-length", "draft-acceptance", "engine-rate", "throughput"},
    "/sources": {"source-up", "source-duration"},
}
"""Path: its charts. Each must draw a line, or a point, of values; lines of gaps alone do not count."""
DEMO_PAGES = {**PAGES, "/acceptance": {*PAGES["/acceptance"], "positions"}}
"""The demo reports its requests, and so shows acceptance by draft position."""
DRAW_SECONDS = 60.0
DRAWN = """() => [...document.querySelectorAll("chart-panel")]
    .filter((panel) => panel.querySelector(".scatterlayer .trace :is(path.js-line[d*=L], path.point)"))
    .map((panel) => panel.getAttribute("name"))"""

REQUESTS = [Request(f"Page {index} of the tea book", 40) for index in range(24)]
DEMO_SERVER = "story-0.5.23 (demo)"


@contextmanager
def demonstration(folder: Path) -> Iterator[Product]:
    """Run `specscope demo` until the end of the block; Ctrl-C must stop it cleanly."""
    port, log_path = free_port(), folder / "demo.log"
    command = [
        sys.executable,
        "-m",
        "specscope",
        "demo",
        "--port",
        str(port),
        "--no-browser",
        "--speed",
        "60",
    ]
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    product = Product(f"http://127.0.0.1:{port}", process, log_path)
    try:
        product.wait_for("answer of /readyz", lambda: is_ready(product.base_url))
        yield product
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


def scraped_twice(product: Product, server: str) -> bool:
    """Return whether every address of a server has been attempted at two times: a line needs two points.

    A spool says how it is twice a minute; no chart waits for that.
    """
    asked = {"server": server, "from": "now-1h", "to": "now", "metric": "scrape.up"}
    listed = {each["source"] for each in product.get("/sources", server=server)["servers"][0]["sources"]}
    lines = product.get("/series/query", **asked, step="1s", aggregate="none")["series"]
    seen = {line["labels"]["source"]: sum(value is not None for value in line["values"]) for line in lines}
    return all(seen.get(source, 0) >= 2 for source in listed - {"probe"})


def wait_for_charts(product: Product, visit: Visit, path: str, charts: set[str]) -> None:
    """Wait until just these charts of the page show values; fail with those that are shown instead."""
    drawn: set[str] = set()

    def shows() -> bool:
        nonlocal drawn
        drawn = set(visit.evaluate(DRAWN))
        return drawn == charts

    try:
        product.wait_for(f"charts of {path}", shows, DRAW_SECONDS)
    except AssertionError as error:
        error.add_note(f"missing: {sorted(charts - drawn)}; not expected: {sorted(drawn - charts)}")
        raise


def visit_all(
    visitor: Visitor, product: Product, name: str, server: str, pages: dict[str, set[str]] = PAGES
) -> dict[str, Visit]:
    """Open every page, keep a picture of each, and check that its charts drew and that nothing went wrong."""
    visits = {}
    product.wait_for("two scrapes of all addresses", lambda: scraped_twice(product, server))
    for path, charts in pages.items():
        visit = visitor(product.base_url).open(f"{path}?server={server}&refresh=5")
        visit.wait_for_charts()
        wait_for_charts(product, visit, path, charts)
        visit.shoot(f"{name}-{path.strip('/') or 'overview'}")
        assert visit.problems == []
        visits[path] = visit
    return visits


@pytest.mark.rig
@pytest.mark.browser
@pytest.mark.xdist_group("rig")
def test_every_page_over_a_real_engine(shared_rig: RunningRig, visitor: Visitor, tmp_path: Path) -> None:
    with serving(tmp_path, {"rig": shared_rig.base_url}) as product:
        product.wait_for("good scrape", lambda: product.has_read("rig"))
        shared_rig.generate(REQUESTS, concurrency=4)

        def settled() -> Document | None:
            summary = product.summary("rig")
            return summary if summary["counts"]["finished_requests"] == len(REQUESTS) else None

        summary = product.wait_for("all requests", settled)
        visits = visit_all(visitor, product, "rig", "rig")
        shown = visits["/"].page.inner_text("[data-number=accept-length]")
        assert f"{summary['accept_length']['value']:.2f}" in shown
        assert visits["/"].page.locator(".badge-demo").count() == 0
        assert "rig" in visits["/sources"].page.inner_text("#content")


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_every_page_over_the_demo(visitor: Visitor, tmp_path: Path) -> None:
    with demonstration(tmp_path) as product:

        def verified() -> float | None:
            if product.source_state(DEMO_SERVER) != "ok":
                return None
            calls: float | None = product.summary(DEMO_SERVER)["counts"]["verify_calls"]
            return calls

        product.wait_for("verify calls", verified)
        visits = visit_all(visitor, product, "demo", DEMO_SERVER, DEMO_PAGES)
        assert visits["/"].page.locator(".badge-demo").count() >= 1
