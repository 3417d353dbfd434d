"""State profiles with real tensors: the drivers run in the rig's environment, which has torch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.sglang_cpu import environment
from tests.sglang_cpu.install import Rig

from specscope_collectors.observations import StateProfile
from specscope_server.store.state_writer import profile_reason

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
D, REQUESTS = 4, 3


def seen(rig: Rig, site: Path, driver: str, *arguments: str) -> dict[str, Any]:
    """Return what a driver printed."""
    paths = os.pathsep.join([str(site), str(ROOT), str(environment.STUBS)])
    variables = environment.serving_environment() | {"PYTHONPATH": paths}
    command = [str(rig.python), str(HERE / driver), *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, env=variables, check=False, timeout=300)
    [line] = [line for line in outcome.stdout.splitlines() if line.startswith("SEEN ")] or [""]
    assert line, outcome.stdout[-2000:] + outcome.stderr[-4000:]
    found: dict[str, Any] = json.loads(line.removeprefix("SEEN "))
    return found


@pytest.fixture(scope="module")
def served(installed_rig: Rig, probe_site: Path) -> dict[str, Any]:
    """What came out of a stand-in engine's states."""
    return seen(installed_rig, probe_site, "serving_driver.py")


@pytest.fixture(scope="module")
def calibrated(installed_rig: Rig, probe_site: Path) -> dict[str, Any]:
    """What came out of calibrations."""
    return seen(installed_rig, probe_site, "calibration_driver.py")


def test_sums_equal_float64_and_accepts_are_told_apart(installed_rig: Rig, probe_site: Path) -> None:
    found = seen(installed_rig, probe_site, "torch_driver.py")
    assert max(found["off"].values()) < 1e-5, found["off"]
    assert found["blind"] == "done"
    assert found["accepts"] == {
        "chain": [1, 2, 2, 2, 1, 1, 1, 2, 1, 1, 1, 1],
        "tree": [1, 2, 1, 2, 1, 2, 2, 2, 1, 1, 2, 1],
        "v1": [1, 2, 2, 2, 1, 1, 2, 2, 1, 2, 2, 2],
    }


def profiles(case: dict[str, Any], **place: Any) -> list[dict[str, Any]]:
    """Return the profiles of a place."""
    return [each for file in case["files"] for each in file["profiles"] if place.items() <= each.items()]


def test_every_profile_is_one_that_the_server_takes(
    served: dict[str, Any], calibrated: dict[str, Any]
) -> None:
    cases = [*served.values(), calibrated["old"], calibrated["new"]]
    found = [each for case in cases for each in profiles(case)]
    assert len(found) > 40
    for each in found:
        record = msgspec.json.decode(json.dumps(each), type=StateProfile)
        assert profile_reason(record, record.time_ms - 1, record.time_ms) is None


def test_health_checks_and_overflow_are_left_out(served: dict[str, Any]) -> None:
    healthy = served["healthy"]
    assert healthy["counts"]["samples"] == {"prefill": 5, "verify": 35}
    for slot in range(3):
        heads = profiles(healthy, phase="prefill", slot=slot)
        assert sum(each["rows"] for each in heads) == healthy["counts"]["rows"]["prefill"]
        assert {each["requests"] for each in heads} == {REQUESTS}
    verified = healthy["counts"]["rows"]
    assert (verified["verify_accepted"] + verified["verify_rejected"]) % (D * REQUESTS) == 0


def test_massive_first_rows_land_among_the_sinks(served: dict[str, Any]) -> None:
    [sinks] = profiles(served["healthy"], phase="prefill", slot=0, row_class="sink")
    [heads] = profiles(served["healthy"], phase="prefill", slot=0, row_class="head")
    assert heads["rows"] == 3 * sinks["rows"]
    assert sinks["ln_norms"]["minimum"] > heads["ln_norms"]["maximum"] + 3


def test_the_embedding_is_told_and_only_it(served: dict[str, Any]) -> None:
    assert served["embedding"]["counts"]["invariants"]["embedding"] == 1
    place = {"phase": "verify_accepted", "slot": 0, "row_class": "other"}
    [pairs] = [each["invariants"] for each in profiles(served["embedding"], **place)]
    assert pairs["equal_id_pairs"] == pairs["equal_id_pairs_identical"] > 0
    for name in ("healthy", "duplicate ids", "broken"):
        assert served[name]["counts"]["invariants"].get("embedding", 0) == 0
        assert served[name]["counts"]["invariants"]["capture_differs"] == 0


def test_boundaries_come_from_the_model(served: dict[str, Any]) -> None:
    assert served["healthy"]["files"][0]["capture"]["boundaries"] == [2, 4, 6]
    assert served["duplicate ids"]["files"][0]["capture"]["boundaries"] == [2, 4]


def test_a_width_that_cannot_be_switches_the_part_off(served: dict[str, Any]) -> None:
    narrow = served["narrow"]
    assert narrow["state"] == "failed"
    assert "no multiple of the hidden size" in narrow["reason"]
    assert narrow["counts"]["invariants"] == {"bad_width": 1}


def test_rows_without_a_norm_are_counted_and_in_no_sum(served: dict[str, Any]) -> None:
    broken = served["broken"]
    assert broken["state"] == "on"
    for each in profiles(broken, slot=1):
        assert each["invariants"]["nonfinite_rows"] == each["rows"]
        assert each["ln_norms"]["bins"] == {}
    assert all(each["invariants"]["nonfinite_rows"] == 0 for each in profiles(broken, slot=0))
    zero = [each["invariants"]["zero_rows"] / each["rows"] for each in profiles(served["half zero"], slot=0)]
    assert 0.2 < np.mean(zero) < 0.8


def test_nothing_of_the_engines_is_held_between_cycles(served: dict[str, Any]) -> None:
    assert all(case["released"] for case in served.values())


def test_before_a_sink_can_be_told_nothing_is_profiled(served: dict[str, Any]) -> None:
    sparse = served["sparse"]
    assert sparse["counts"]["samples"] == {"prefill": 5, "verify": 7}
    assert sparse["counts"]["dropped"]["no_limit"] == 12
    assert sparse["files"] == []


def test_ranks_can_be_compared_by_a_sample_that_all_take(served: dict[str, Any]) -> None:
    number, means = served["healthy"]["check"]
    assert number % 16 == 0
    assert len(means) == 3
    second = served["second rank"]
    assert second["check"] == [number, means], "equal states, so equal means"
    assert second["counts"]["samples"] == {"prefill": 3}, "samples 0, 16 and 32"
    assert second["files"] == []


@pytest.mark.parametrize("kind", ["old", "new"])
def test_a_calibration_sees_all_boundaries(kind: str, calibrated: dict[str, Any]) -> None:
    found = calibrated[kind]
    assert found["off"] < 1e-5
    assert found["rows"] == found["expected_rows"] > 0
    assert found["phases"] == ["calibration"]
    assert set(found["slots"]) == {None}
    assert found["capture"]["is_calibration"]
    assert found["hooks_left"] == 0


def test_a_calibration_that_cannot_be_says_why(calibrated: dict[str, Any]) -> None:
    assert calibrated["owing"][0] == calibrated["graph"][0] == "missing"
    assert "one rank" in calibrated["owing"][1]
    assert "graph" in calibrated["graph"][1]
