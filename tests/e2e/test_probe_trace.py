"""The probe's names in a trace of a real engine: enough to tell phases where the engine names none itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.rig import Request, RunningRig

from specscope_collectors.traces.bounds import Bounds
from specscope_collectors.traces.reading import read_file
from specscope_collectors.traces.summary import summarise

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"A bowl of pears {index}", 12 + 5 * index) for index in range(2)]


def without_own_names(path: Path, folder: Path) -> Path:
    """Write a trace as an engine before 0.5.15 would leave it: its own ranges are not named."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    events: list[dict[str, Any]] = trace["traceEvents"]
    trace["traceEvents"] = [
        event
        for event in events
        if not str(event.get("cat", "")).endswith("user_annotation") or event["name"].startswith("specscope.")
    ]
    assert len(trace["traceEvents"]) < len(events), "this engine names ranges, too"
    bare = folder / "bare" / path.name
    bare.parent.mkdir()
    bare.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return bare


def ranges_of(path: Path) -> tuple[dict[str, int], dict[str, dict[int, int]]]:
    """Return how many ranges of each phase the reader finds, and its batch sizes as far as they are told."""
    with path.open("rb") as stream:
        [rank] = summarise([read_file(stream, path.name, Bounds())], "capture", now_ms=1).ranks
    assert rank.phases, "whole cycles are found by them"
    return rank.ranges, {phase.phase: phase.batch_sizes for phase in rank.phases if phase.batch_sizes}


def test_names(probed_rig: RunningRig, tmp_path: Path) -> None:
    known = [answer["meta_info"]["spec_verify_ct"] for answer in probed_rig.generate(REQUESTS)]
    body = {"output_dir": str(tmp_path), "activities": ["CPU"], "with_stack": False, "record_shapes": False}
    with httpx.Client(base_url=probed_rig.base_url, timeout=120.0) as client:
        client.post("/start_profile", json=body).raise_for_status()
        again = [answer["meta_info"]["spec_verify_ct"] for answer in probed_rig.generate(REQUESTS)]
        client.post("/stop_profile").raise_for_status()
    assert again == known
    [path] = tmp_path.glob("**/*.trace.json.gz")
    counted = sum(known)
    ranges = {
        "draft": counted, "verify": counted, "draft_extend": counted + len(REQUESTS), "prefill": len(REQUESTS)
    }  # fmt: skip
    sizes = {"verify": {1: counted}, "sampling": {1: counted}, "prefill": {1: len(REQUESTS)}}
    assert ranges_of(path) == (ranges, sizes)
    assert ranges_of(without_own_names(path, tmp_path)) == (ranges, {}), "the probe's names tell no sizes"
