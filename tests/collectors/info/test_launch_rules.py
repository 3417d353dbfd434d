"""What a scrape says about the launch, rule by rule (`test_identity` has the cases as they come up)."""

from __future__ import annotations

import pytest

from specscope_collectors.identity import Change, Evidence, Identity, judge

KNOWN = Identity(source="server_info", process="p1", configuration="c1")
CERTAIN = Identity(source="server_info", process="p1", configuration="c1", certain=True)
OTHER_PROCESS = Identity(source="server_info", process="p2", configuration="c1")
OTHER_CONFIGURATION = Identity(source="server_info", process="p1", configuration="c2")
BY_NAMES = Identity(source="metric_names", process="p3", configuration="c3")

NOTHING = Evidence()
STEADY = Evidence(fell=0, compared=3)
ONE_FELL = Evidence(fell=1, compared=3)
ALL_FELL = Evidence(fell=3, compared=3)
GAP = Evidence(fell=0, compared=3, gap=True)


@pytest.mark.parametrize(
    ("known", "seen", "evidence", "change"),
    [
        (None, KNOWN, NOTHING, Change.FIRST),
        (KNOWN, KNOWN, NOTHING, Change.SAME),
        (KNOWN, KNOWN, ONE_FELL, Change.SAME),
        (KNOWN, KNOWN, ALL_FELL, Change.RESTART),
        (CERTAIN, CERTAIN, ALL_FELL, Change.SAME),
        (KNOWN, OTHER_PROCESS, NOTHING, Change.RESTART),
        (KNOWN, OTHER_PROCESS, STEADY, Change.CONFIGURATION),
        (KNOWN, OTHER_PROCESS, ONE_FELL, Change.RESTART),
        (KNOWN, OTHER_PROCESS, GAP, Change.RESTART),
        (KNOWN, OTHER_CONFIGURATION, GAP, Change.CONFIGURATION),
        (BY_NAMES, KNOWN, STEADY, Change.CONFIGURATION),
        (KNOWN, BY_NAMES, STEADY, Change.SAME),
        (KNOWN, BY_NAMES, ALL_FELL, Change.RESTART),
    ],
)
def test_a_change_of_the_launch(
    known: Identity | None, seen: Identity, evidence: Evidence, change: Change
) -> None:
    assert judge(known, seen, evidence) is change
