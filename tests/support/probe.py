"""The probe as a user has it: the package installed beside SGLang, and an engine that carries it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.sglang_cpu.install import Rig
from tests.support.rig import RunningRig
from tests.support.states import sampling_all

ROOT = Path(__file__).resolve().parents[2]
EXPORT_SECONDS = 0.2
SETTLE_SECONDS = 120.0

Labels = dict[str, str]


@pytest.fixture(scope="session")
def probe_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the bare package was installed, entry points included."""
    return install_probe(tmp_path_factory.mktemp("probe-site"))


def install_probe(folder: Path) -> Path:
    """Install the bare package into a folder, and return it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps"]
    command = [*pip, "--no-index", "--no-build-isolation", "--target", str(folder), str(ROOT)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return folder


def variables(site: Path, folder: Path, **more: str) -> dict[str, str]:
    """Return what switches the probe on in an engine."""
    return {
        "PYTHONPATH": str(site),
        "SPECSCOPE_PROBE": "1",
        "SPECSCOPE_PROBE_EXPORT_SECONDS": str(EXPORT_SECONDS),
        "SPECSCOPE_PROBE_BUDGET": "1",  # these processors are shared with other tests
        "SPECSCOPE_PROBE_STOP_FILE": str(folder / "stop"),
        **more,
    }


@pytest.fixture(scope="session")
def probed_rig(
    installed_rig: Rig, probe_site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningRig]:
    """One EAGLE-3 engine with K = 3 and the probe, for all tests; loaded both ways at once.

    All that the probe has is on: every forward's states are sampled, too, into `state_spool`. It is started
    as a user starts it.
    """
    folder = tmp_path_factory.mktemp("probed-rig")
    ids = folder / "ids.json"
    ids.write_text(json.dumps(list(range(128))))
    more = sampling_all(state_spool(folder)) | {"SPECSCOPE_PROBE_TOKEN_IDS": str(ids)}
    factory = "specscope_probe.loading:forward_hook"
    hook = json.dumps([{"name": "specscope", "target_modules": ["*"], "hook_factory": factory}])
    running = RunningRig(
        installed_rig,
        folder / "engine.log",
        "eagle3",
        3,
        ["--forward-hooks", hook],
        variables(probe_site, folder, **more),
        from_nothing=True,
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


def state_spool(folder: Path) -> Path:
    """Return where the states of an engine wait whose log lies in this folder."""
    return folder / "spool"


class Exposition:
    """What the probe says on an engine's ``/metrics`` at one moment."""

    def __init__(self, base_url: str) -> None:
        self.body = httpx.get(f"{base_url}/metrics", timeout=30.0).raise_for_status().text
        self.samples: list[tuple[str, Labels, float]] = [
            (sample.name, dict(sample.labels), sample.value)
            for family in text_string_to_metric_families(self.body)
            for sample in family.samples
            if sample.name.startswith("specscope_")
        ]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum over the series with these labels; of none, 0."""
        return sum(self.values(name, **labels))

    def values(self, name: str, **labels: str) -> list[float]:
        """Return the series with these labels."""
        return [
            value for found, own, value in self.samples if found == name and labels.items() <= own.items()
        ]

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """Return sums by the values of one label."""
        found: dict[str, float] = {}
        for sample, own, value in self.samples:
            if sample == name and labels.items() <= own.items():
                found[own[label]] = found.get(own[label], 0.0) + value
        return found


def settled(running: RunningRig) -> Exposition:
    """Return the exposition when two in a row count the same cycles."""
    deadline = time.monotonic() + SETTLE_SECONDS
    before = None
    while time.monotonic() < deadline:
        now = Exposition(running.base_url)
        counts = (now.total("specscope_cycles_total"), now.total("specscope_cycles_seen_total"))
        if counts == before and now.samples:
            return now
        before = counts
        time.sleep(2 * EXPORT_SECONDS)
    raise AssertionError("the probe's counters never came to rest")
