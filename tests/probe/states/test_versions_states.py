"""State profiles on the real workers of several SGLang versions: accepted rows are told from others."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.probe.test_versions import VERSIONS, run
from tests.sglang_cpu.install import Rig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_a_verify_are_judged_by_the_engines_own_result(
    version: str, installed_rig: Rig, probe_site: Path
) -> None:
    kinds = ["v2", "v1"] if version == "0.5.8" else ["v2"]
    driver = str(HERE / "version_driver.py")
    # The driver stands in a package of tests, which must be found beside the installed package.
    site = Path(os.pathsep.join([str(probe_site), str(ROOT)]))
    outcome = run(installed_rig, version, site, driver, *kinds, SPECSCOPE_PROBE="1")
    [line] = [line for line in outcome.stdout.splitlines() if line.startswith("SEEN ")] or [""]
    assert line, outcome.stdout[-2000:] + outcome.stderr[-4000:]
    found = json.loads(line.removeprefix("SEEN "))
    assert set(found) == set(kinds)
    for kind in kinds:
        seen = found[kind]
        assert seen["profiled"] > 0, seen
        # Three requests with 0, 2 and 3 accepted drafts; the one with 2 is a health check.
        assert seen["rows"] == {
            "verify_accepted": 5 * seen["profiled"],
            "verify_rejected": 3 * seen["profiled"],
        }
        assert seen["capture"]["boundaries"] == [2, 7]
