"""Where the time of a real engine goes: its own device timer and the probe inside it, on the same cycles."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.sglang_cpu.install import Rig
from tests.support.probe import variables
from tests.support.product import Document, Product, serving
from tests.support.rig import Request, RunningRig

from specscope_server.kit.timeparse import to_iso

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

LOAD = [Request(f"The {index}th cup of tea was", 1000) for index in range(4)]
"""Steady: all begin together and are equally long, so that no prefill comes between their cycles."""
WARM_UP = [Request("A cup of tea", 24)] * 4
CONCURRENCY = 4
SHORT_WINDOWS = ["--decode-log-interval", "10"]
"""The first one spans the pause before the load, so that rates cannot tell its cycles."""
SCRAPES_BEFORE = 4
"""So that the load begins in an interval of its own: the one in which a launch is first seen is left out."""
ENOUGH_CYCLES = 220
Timed: TypeAlias = tuple[Document, Document, Document]
"""Summaries: of all that was watched, of the same from the log's first window on, and of the log alone."""
VERIFY_AGREEMENT = 0.15
"""The timer wraps the runner, the probe the worker's forward around it: on this tiny model that shows."""
CYCLE_AGREEMENT = 0.05
"""Also of rates: a Decode line tells its 10 cycles exactly."""
LEAST_SEEN_BY_THE_TIMER = 0.85
"""It sees the passes, the probe what lies between them, too: 1 to 2 % of a cycle alone, 9 % were seen where
other tests took the processors."""
GAUGES_AGREEMENT = 0.1
"""Scrapes miss some of such short windows: where other tests took the processors, 9 % were seen."""


@pytest.fixture(scope="module")
def timed(installed_rig: Rig, probe_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Timed]:
    """Where the time of a steady load went: as watched, with device timer and probe, and by the log alone."""
    folder = tmp_path_factory.mktemp("timed-rig")
    switched_on = variables(probe_site, folder, SGLANG_ENABLE_METRICS_DEVICE_TIMER="1")
    running = RunningRig(installed_rig, folder / "engine.log", "eagle3", 3, SHORT_WINDOWS, switched_on)
    try:
        running.start()
        running.generate(WARM_UP, CONCURRENCY)
        with serving(folder, {"rig": running.base_url}) as product:
            product.wait_for("scrapes", lambda: scrapes(product) >= SCRAPES_BEFORE)
            begun = int(time.time())
            running.generate(LOAD, CONCURRENCY)
            found = product.wait_for("enough cycles", lambda: enough(product), 120)
            import_log(folder, running.log_path)
            steady = {"from": to_iso(1000 * first_window(running.log_path, begun)), "launch": "newest"}
            probed = product.get("/timing/summary", server="rig", **steady)
            yield found, probed, product.get("/timing/summary", server="log", launch="newest")
    finally:
        running.stop()


def first_window(log: Path, begun: int) -> int:
    """Return when the log wrote its first window of the load, in seconds: whole windows tell what follows.

    That window spans the pause before the load and counts for nothing; its cycles are the slowest.
    """
    written = re.findall(r"^\[([-0-9]+ [:0-9]+)[^\]]*\] Decode batch", log.read_text(), re.MULTILINE)
    times = [int(time.mktime(time.strptime(each, "%Y-%m-%d %H:%M:%S"))) for each in written]
    return next(each for each in times if each >= begun)


def enough(product: Product) -> Document | None:
    """Return the summary once it holds the load."""
    found = product.get("/timing/summary", server="rig", launch="newest")
    return found if (found["cycles"] or 0) > ENOUGH_CYCLES else None


def scrapes(product: Product) -> int:
    """Return how often the engine's metrics were read."""
    if not product.has_read("rig"):
        return 0
    asked = {"server": "rig", "metric": "requests.queued", "from": "now-10m", "to": "now", "step": "1s"}
    return sum(sum(one["n"]) for one in product.get("/series/query", **asked)["series"])


def import_log(folder: Path, path: Path) -> None:
    """Read the engine's log as that of a server of its own."""
    command = [sys.executable, "-m", "specscope", "import", "log", str(path), "--server", "log"]
    command += ["--database", f"sqlite:///{folder / 'specscope.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def level(found: Document, name: str) -> Document:
    """Return one level of evidence."""
    return next(each for each in found["levels"] if each["level"] == name)


def test_the_probe_and_the_device_timer_see_the_same_verify(timed: Timed) -> None:
    found, *_ = timed
    assert found["evidence"] == "probe"
    probe, timer = level(found, "probe"), level(found, "device_timer")
    assert timer["state"] == "present", timer
    assert timer["cycles"] == pytest.approx(probe["cycles"], rel=0.05)
    assert timer["verify_ms"] == pytest.approx(probe["verify_ms"], rel=VERIFY_AGREEMENT)
    assert LEAST_SEEN_BY_THE_TIMER < timer["active_ms"] / probe["active_ms"] < 1 + CYCLE_AGREEMENT


def test_decode_lines_give_the_cycle_that_the_probe_measured(timed: Timed) -> None:
    _, probed, by_log = timed
    assert (probed["evidence"], by_log["evidence"]) == ("probe", "gauges")
    assert by_log["cycles"] == pytest.approx(probed["cycles"], rel=0.1)
    assert by_log["cycle_time"]["value"] == pytest.approx(probed["cycle_time"]["value"], rel=CYCLE_AGREEMENT)


@pytest.mark.benchmark
def test_gauges_give_the_same_cycle(timed: Timed) -> None:
    found, *_ = timed
    rates = level(found, "gauges")["active_ms"]
    assert rates == pytest.approx(found["cycle_time"]["value"], rel=GAUGES_AGREEMENT)


def test_the_parts_add_up_and_compilation_is_apart(timed: Timed) -> None:
    found, *_ = timed
    seconds = sum(each["seconds"] for each in found["phases"])
    assert seconds == pytest.approx(found["wall_seconds"], rel=0.02)
    inside = sum(each["ms_per_cycle"] for each in found["phases"] if each["is_in_cycle"])
    assert inside == pytest.approx(found["cycle_time"]["value"])
    assert [check["name"] for check in found["checks"] if check["passed"] is False] == []
