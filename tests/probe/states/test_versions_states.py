"""State profiles on the real workers of several SGLang versions: accepted rows are told from others."""

from __future__ import annotations

import pytest
from tests.support.versions import VERSIONS, WORKERS, Seen

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_a_verify_are_judged_by_the_engines_own_result(version: str, seen_of: Seen) -> None:
    kinds = [kind for own, kind in WORKERS if own == version]
    found = seen_of(version)["STATES"]
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
