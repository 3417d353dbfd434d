"""What only a GPU can show: that nothing waits for it, that its events and copies come, and what it costs.

Needs a Python with numpy, prometheus_client and a torch that finds a CUDA device: this one, or the one that
``SPECSCOPE_GPU_PYTHON`` names. Run it with ``pytest -n 0 -s -m gpu tests/probe/states/test_gpu.py``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.probe.states.test_reduction import seen
from tests.sglang_cpu.install import Rig

ROOT = Path(__file__).parents[3]
DRIVER = Path(__file__).with_name("gpu_driver.py")
CUDA = "import torch; print(torch.cuda.is_available())"
MOST_OFF = 1e-5


def python_with_cuda() -> str:
    """Return a Python whose torch finds a device; skip where there is none."""
    chosen = os.environ.get("SPECSCOPE_GPU_PYTHON")
    if chosen is None and importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here: name a Python that has torch and a CUDA device in SPECSCOPE_GPU_PYTHON")
    python = chosen or sys.executable
    asked = subprocess.run([python, "-c", CUDA], capture_output=True, text=True, check=False, timeout=300)
    if asked.stdout.strip() != "True":
        pytest.skip(f"torch of {python} finds no CUDA device")
    return python


def assert_exact(found: dict[str, Any]) -> None:
    """Compare with float64, and see that every part is still on and every sample was taken."""
    assert max(found["off"].values()) < MOST_OFF, found["off"]
    assert found["norms_off"] < MOST_OFF
    for case in (found["sampled"], found["unsampled"]):
        assert set(case["parts"].values()) == {"on"}, case["reasons"]
        assert case["dropped"].keys() <= {"no_limit"}
    assert found["sampled"]["rows"] > 0
    assert found["unsampled"]["samples"] == 1


@pytest.mark.gpu
def test_on_a_device_nothing_waits_and_everything_comes() -> None:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "collectors")])
    run = subprocess.run(
        [python_with_cuda(), str(DRIVER), "cuda"],
        capture_output=True, text=True, check=False, timeout=900, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    [line] = [line for line in run.stdout.splitlines() if line.startswith("SEEN ")] or [""]
    assert line, run.stdout[-2000:] + run.stderr[-4000:]
    found = json.loads(line.removeprefix("SEEN "))
    sampled, unsampled = found["sampled"], found["unsampled"]
    print(  # noqa: T201
        f"\n{found['device']}: a sampled step takes {sampled['device_ms']:.3f} ms of the device and "
        f"{sampled['host_us'] - unsampled['host_us']:.0f} µs of the host; off by {found['off']}"
    )
    assert_exact(found)
    assert sampled["device_ms"] > 0
    assert sampled["timed"]["speculative"] > 0
    assert unsampled["timed"]["speculative"] > 0


@pytest.mark.rig
@pytest.mark.xdist_group("rig")
def test_the_same_runs_without_a_device(installed_rig: Rig, probe_site: Path) -> None:
    found = seen(installed_rig, probe_site, DRIVER.name, "cpu")
    assert_exact(found)
    assert found["sampled"]["device_ms"] is None
    assert found["sampled"]["timed"] == {}
