"""When measurements belong to another launch."""

from __future__ import annotations

import pytest

from specscope_collectors.identity import Change, Evidence, Identity, judge

KNOWN = Identity(source="server_info", process="p1", configuration="c1", certain=True)
WEAK = Identity(source="server_info", process="p1", configuration="c1")
NAMES = Identity(source="metric_names", process="m", configuration="m")
QUIET = Evidence(fell=0, compared=9)
NOTHING = Evidence()
"""No counter could be compared."""
ALL_FELL = Evidence(fell=9, compared=9)
SOME_FELL = Evidence(fell=2, compared=9)
GAP = Evidence(fell=0, compared=9, gap=True)


def other(identity: Identity, **changes: str) -> Identity:
    fields = {name: getattr(identity, name) for name in ("source", "process", "configuration", "certain")}
    return Identity(**(fields | changes))


@pytest.mark.parametrize(
    ("known", "seen", "evidence", "change"),
    [
        (None, KNOWN, QUIET, Change.FIRST),
        (KNOWN, KNOWN, QUIET, Change.SAME),
        (KNOWN, KNOWN, GAP, Change.SAME),
        (WEAK, WEAK, NOTHING, Change.SAME),
        (WEAK, other(WEAK, process="p2"), NOTHING, Change.RESTART),
        (WEAK, other(WEAK, process="p2"), SOME_FELL, Change.RESTART),
        (KNOWN, KNOWN, SOME_FELL, Change.SAME),
        (KNOWN, other(KNOWN, process="p2"), GAP, Change.RESTART),
        (KNOWN, other(KNOWN, process="p2"), ALL_FELL, Change.RESTART),
        (KNOWN, other(KNOWN, process="p2", configuration="c2"), GAP, Change.RESTART),
        (KNOWN, other(KNOWN, configuration="c2"), QUIET, Change.CONFIGURATION),
        (KNOWN, KNOWN, ALL_FELL, Change.SAME),
        (WEAK, WEAK, ALL_FELL, Change.RESTART),
        (KNOWN, other(KNOWN, process="p2"), QUIET, Change.CONFIGURATION),
        (NAMES, NAMES, QUIET, Change.SAME),
        (NAMES, NAMES, ALL_FELL, Change.RESTART),
        (NAMES, KNOWN, QUIET, Change.CONFIGURATION),
        (NAMES, KNOWN, ALL_FELL, Change.RESTART),
        (KNOWN, NAMES, GAP, Change.SAME),
        (KNOWN, NAMES, ALL_FELL, Change.RESTART),
    ],
)
def test_judgement(known: Identity | None, seen: Identity, evidence: Evidence, change: Change) -> None:
    assert judge(known, seen, evidence) is change


def test_salt_tells_restarts_apart_that_look_alike() -> None:
    assert WEAK.key("") == WEAK.key("")
    assert WEAK.key("1") != WEAK.key("2")
