"""The probe on the real classes of several SGLang versions, and `specscope probe check` on their source."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.sglang_cpu import environment
from tests.sglang_cpu.environment import SGLANG_VERSION
from tests.sglang_cpu.install import Rig, RigMissingError
from tests.sglang_cpu.other_versions import OTHER_VERSIONS, ensure_version

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

VERSIONS = (SGLANG_VERSION, *OTHER_VERSIONS)
DRIVER = Path(__file__).with_name("version_driver.py")
WORKERS = [(version, "v2") for version in VERSIONS] + [("0.5.8", "v1")]

SEAMS = {"cycle", "draft", "verify", "forward", "draft_extend", "prefill_draft_extend", "results"}


def paths(version: str, site: Path) -> str:
    """Return the ``PYTHONPATH`` of a process with that SGLang and the package beside it."""
    try:
        own = [] if version == SGLANG_VERSION else [str(ensure_version(version))]
    except RigMissingError as reason:
        if os.environ.get("CI"):
            pytest.fail(f"no SGLang {version}: {reason}")
        pytest.skip(f"no SGLang {version}: {reason}")
    return os.pathsep.join([*own, str(site), str(environment.STUBS)])


def run(rig: Rig, version: str, site: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the rig's Python over that version."""
    variables = environment.serving_environment() | {"PYTHONPATH": paths(version, site)} | more
    command = [str(rig.python), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False, timeout=300)


@pytest.fixture(scope="module")
def watched(installed_rig: Rig, probe_site: Path) -> Any:
    """What the probe saw in a version's classes, asked for once per version."""
    known: dict[str, dict[str, Any]] = {}

    def ask(version: str) -> dict[str, Any]:
        if version not in known:
            kinds = [kind for own, kind in WORKERS if own == version]
            outcome = run(installed_rig, version, probe_site, str(DRIVER), *kinds, SPECSCOPE_PROBE="1")
            [line] = [line for line in outcome.stdout.splitlines() if line.startswith("SEEN ")] or [""]
            assert line, outcome.stdout[-2000:] + outcome.stderr[-4000:]
            known[version] = json.loads(line.removeprefix("SEEN "))
        return known[version]

    return ask


@pytest.mark.parametrize(("version", "kind"), WORKERS)
def test_real_workers_are_measured(version: str, kind: str, watched: Any) -> None:
    seen = watched(version)
    assert seen["wrapped"] == seen["loops"]
    worker = seen[kind]
    assert set(worker["seams"]) == SEAMS
    assert {part: state[0] for part, state in worker["parts"].items()} == {
        "timing": "on", "accepts": "on", "output": "on", "ranges": "on",
    }  # fmt: skip
    sums = worker["sums"]["speculative"]
    assert sums["cycles"] == 3, "five cycles, of which the first two warm up"
    assert all(sums[phase] > 0 for phase in ("draft", "verify_prepare", "verify", "sampling", "draft_extend"))
    # Three rows per cycle with 0, 2 and 3 accepted drafts; the one with 2 is a health check.
    assert worker["worker_view"] == [5, 0, 5, 5]
    assert worker["request_view"] == [5, 0, 0, 5]
    assert worker["depths"] == [0, 0, 0, 10]
    assert worker["left_behind"] == [], "the wrappers did not come off"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_check_finds_in_the_source_what_is_there_when_running(
    version: str, watched: Any, installed_rig: Rig, probe_site: Path
) -> None:
    arguments = ["-m", "specscope", "probe", "check", "--format", "json"]
    outcome = run(installed_rig, version, probe_site, *arguments)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    found = json.loads(outcome.stdout)
    assert found["version"] == version
    assert found["problems"] == []
    assert sorted(found["loops"]) == sorted(watched(version)["loops"])
    assert ("plugin" in found["loaders"]) == (version != "0.5.8")
    names = {"v2": "EAGLEWorkerV2", "v1": "EAGLEWorker"}
    for kind in (kind for own, kind in WORKERS if own == version):
        [report] = [each for each in found["workers"] if each["worker"] == names[kind]]
        running = watched(version)[kind]["seams"]
        expected = {name: carrier.replace("Runner.", "ModelRunner.") for name, carrier in running.items()}
        assert report["seams"] == expected


def test_the_check_says_what_to_do(installed_rig: Rig, probe_site: Path) -> None:
    more = {"SGLANG_PLUGINS": "other", "SGLANG_SIMULATE_ACC_LEN": "2"}
    outcome = run(installed_rig, "0.5.8", probe_site, "-m", "specscope", "probe", "check", **more)
    assert outcome.returncode == 0
    for advice in (
        "SPECSCOPE_PROBE=1",
        "--forward-hooks",
        "SGLANG_PLUGINS=other",
        "accepted drafts are made up",
    ):
        assert advice in outcome.stdout


def test_switched_off_nothing_of_it_is_there(installed_rig: Rig, probe_site: Path) -> None:
    """Both loaders are called in what looks like a scheduler process: no import, no wrapper."""
    code = (
        "import sys, multiprocessing\n"
        "from sglang.srt.managers.scheduler import Scheduler\n"
        "before = {name: vars(Scheduler)[name] for name in vars(Scheduler)}\n"
        "multiprocessing.parent_process = lambda: object()\n"
        "from sglang.srt.plugins import load_plugins\n"
        "load_plugins()\n"
        "from specscope_probe.loading import forward_hook\n"
        "assert forward_hook({}) is None\n"
        "assert {name: vars(Scheduler)[name] for name in vars(Scheduler)} == before\n"
        "print('LOADED', sorted(name for name in sys.modules if name.startswith('specscope')))\n"
    )
    outcome = run(installed_rig, SGLANG_VERSION, probe_site, "-c", code, SPECSCOPE_PROBE="0")
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert "LOADED ['specscope_probe', 'specscope_probe.loading']" in outcome.stdout
