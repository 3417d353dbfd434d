"""The probe on the real classes of several SGLang versions, and `specscope probe check` on their source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sglang_cpu.install import Rig
from tests.support.versions import VERSIONS, WITHOUT_PLUGINS, WORKERS, Seen, run

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

SEAMS = {"cycle", "draft", "verify", "forward", "draft_extend", "prefill_draft_extend", "results"}


@pytest.mark.parametrize(("version", "kind"), WORKERS)
def test_real_workers_are_measured(version: str, kind: str, seen_of: Seen) -> None:
    seen = seen_of(version)["COUNTS"]
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
    version: str, seen_of: Seen, installed_rig: Rig, probe_site: Path
) -> None:
    arguments = ["-m", "specscope", "probe", "check", "--format", "json"]
    outcome = run(installed_rig, version, (probe_site,), *arguments)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    found, watched = json.loads(outcome.stdout), seen_of(version)["COUNTS"]
    assert found["version"] == version
    assert found["problems"] == []
    assert sorted(found["loops"]) == sorted(watched["loops"])
    assert ("plugin" in found["loaders"]) == (version != "0.5.8")
    names = {"v2": "EAGLEWorkerV2", "v1": "EAGLEWorker"}
    for kind in (kind for own, kind in WORKERS if own == version):
        [report] = [each for each in found["workers"] if each["worker"] == names[kind]]
        running = watched[kind]["seams"]
        expected = {name: carrier.replace("Runner.", "ModelRunner.") for name, carrier in running.items()}
        assert report["seams"] == expected


def test_the_check_says_what_to_do(installed_rig: Rig, probe_site: Path) -> None:
    more = {"SGLANG_PLUGINS": "other", "SGLANG_SIMULATE_ACC_LEN": "2"}
    outcome = run(installed_rig, "0.5.8", (probe_site,), "-m", "specscope", "probe", "check", **more)
    assert outcome.returncode == 0
    for advice in (
        "SPECSCOPE_PROBE=1",
        "--forward-hooks",
        "SGLANG_PLUGINS=other",
        "accepted drafts are made up",
    ):
        assert advice in outcome.stdout


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != WITHOUT_PLUGINS])
def test_switched_off_nothing_of_it_is_there(version: str, seen_of: Seen) -> None:
    """Both loaders were called in what looks like a scheduler process: no import, no wrapper."""
    assert seen_of(version)["SWITCHED_OFF"] == {
        "hook": None, "is_untouched": True, "loaded": ["specscope_probe", "specscope_probe.loading"],
    }  # fmt: skip
