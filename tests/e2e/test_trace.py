"""A capture of a real engine: it holds as many cycles as the engine's own counters count in that window."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session
from tests.support.rig import Request, RunningRig

from specscope_server.models import Trace
from specscope_server.store.engine import create_store_engine
from specscope_server.store.trace_writer import read_trace

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"A plate of apples {index}", 12 + 5 * index) for index in range(3)]
DEADLINE_SECONDS = 120.0


def verify_calls(engine: RunningRig) -> int:
    """Return what the engine has counted of verify calls so far."""
    text = httpx.get(f"{engine.base_url}/metrics", timeout=30).text
    lines = [line for line in text.splitlines() if line.startswith("sglang:spec_verify_calls_total")]
    return round(sum(float(line.rsplit(" ", 1)[1]) for line in lines))


def settled(engine: RunningRig, wanted: int) -> int:
    """Return the count of verify calls once it has come to ``wanted``, or as it is after some seconds."""
    until = time.monotonic() + 20
    while verify_calls(engine) < wanted and time.monotonic() < until:
        time.sleep(0.2)
    return verify_calls(engine)


def test_a_capture_holds_the_cycles_that_the_engine_counted(shared_rig: RunningRig, tmp_path: Path) -> None:
    engine, folder, database = shared_rig, tmp_path / "profile", f"sqlite:///{tmp_path / 'a.db'}"
    folder.mkdir()
    known = [answer["meta_info"]["spec_verify_ct"] for answer in engine.generate(REQUESTS)]
    steps = sum(known) + len(REQUESTS)  # one prefill each
    before = settled(engine, sum(known))
    command = [
        *(sys.executable, "-m", "specscope", "trace", "capture", "--server", f"rig={engine.base_url}"),
        *("--steps", str(steps), "--output-dir", str(folder), "--cpu-only", "--database", database),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = [process.stderr.readline(), process.stderr.readline()]
            assert "generates nothing until the files are written" in lines[0]
            assert lines[1].startswith("recording"), lines
            again = [answer["meta_info"]["spec_verify_ct"] for answer in engine.generate(REQUESTS)]
            counted = settled(engine, before + sum(again)) - before
            engine.generate([Request("The step that ends it", 2)])
            _, rest = process.communicate(timeout=DEADLINE_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0, rest
    assert again == known
    store = create_store_engine(database)
    with Session(store) as session:
        [record] = [read_trace(row.body) for row in session.scalars(select(Trace))]
    store.dispose()
    [rank] = record.ranks
    assert counted == sum(known)
    assert rank.ranges == {
        "draft": counted, "verify": counted, "draft_extend": counted + len(REQUESTS), "prefill": len(REQUESTS)
    }  # fmt: skip
    assert rank.basis == "cpu_ranges"
    phases = {phase.phase: phase.count for phase in rank.phases}
    assert phases["draft_extend"] == counted
    assert phases["prefill_draft_extend"] == len(REQUESTS)
