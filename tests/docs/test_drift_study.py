"""The false-alarm budget on the page Drift is told from the counts of the study, which the guide shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specscope_server.drift import measured
from specscope_server.drift.budget import bound_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "drift-study.md"


def test_the_budget_rests_on_the_counts_that_the_guide_shows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(
        r"over all sizes of windows, with the mixed reference: ([\d,]+) of ([\d,]+) \(≤ ([\d.]+)\)", text
    )
    assert found is not None
    alarms, windows = (int(each.replace(",", "")) for each in found.groups()[:2])
    assert (alarms, windows) == (measured.ALARMS, measured.WINDOWS)
    assert f"{bound_of(alarms, windows):.2g}" == found[3]
    pools = text.partition("| pool | requests | rows | what |\n|---|---|---|---|\n")[2].partition("\n\n")[0]
    assert len(pools.splitlines()) == measured.KINDS_OF_TEXT


def test_an_alarm_raises_the_bound() -> None:
    bounds = [bound_of(alarms, 12_000) for alarms in (0, 1, 2, 12, 12_000)]
    assert bounds == sorted(bounds)
    assert bounds[1] == pytest.approx(4.72e-4, rel=0.01)
    assert bounds[-1] == pytest.approx(1)
