"""Calibration files become one reference of all boundaries, as if there had been one window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.collectors.references.boundary_states import (
    BOUNDARIES,
    MadeUpModel,
    sums_of_requests,
    write_calibration,
)

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.calibrating import calibrate
from specscope_collectors.references.document import packed, unpacked
from specscope_collectors.references.errors import DumpError
from specscope_collectors.states.bank import Place, bank_of
from specscope_collectors.states.rules import Fault, judge
from specscope_collectors.states.sums import sums_of


def others(profiles: tuple[StateProfile, ...]) -> list[StateProfile]:
    """Return the profiles of rows that are neither first nor sinks."""
    return [each for each in profiles if each.row_class == "other"]


def test_windows_add_up_to_what_one_would_hold(tmp_path: Path) -> None:
    model = MadeUpModel()
    for number, requests in enumerate((range(20), range(20, 50), range(50, 80))):
        path = tmp_path / f"specscope-states-{number:013d}-1-0-tp0.json.gz"
        write_calibration(path, sums_of_requests(model, requests), 1_790_000_000_000 + 60_000 * number)
    found = calibrate(tmp_path, "all", 1_790_000_500_000, "made/up")
    whole = sums_of_requests(model, range(80)).profiles(1)
    assert (found.kind, found.model, found.requests, found.rows) == ("boundaries", "made/up", 80, 80 * 32)
    assert (found.boundaries, found.last and found.last.norm) == (tuple(range(BOUNDARIES)), "pre_norm")
    assert found.provenance["engine_version"] == "0.5.23"
    assert found.notes == ()
    for mine, theirs in zip(others(found.profiles), others(whole), strict=True):
        assert (mine.boundary, mine.rows, mine.requests) == (theirs.boundary, theirs.rows, theirs.requests)
        assert mine.ln_norms.bins == theirs.ln_norms.bins
        assert (mine.token_ids, mine.token_rows) == (theirs.token_ids, theirs.token_rows)
        for name in ("direction_sum", "direction_sum_of_squares", "token_directions"):
            arrays = [np.frombuffer(getattr(each, name), "<f4") for each in (mine, theirs)]
            np.testing.assert_allclose(arrays[0], arrays[1], rtol=1e-4, atol=1e-3)


def test_a_reference_from_a_calibration_names_an_off_by_one(tmp_path: Path) -> None:
    model = MadeUpModel()
    write_calibration(tmp_path / "specscope-states-1.json.gz", sums_of_requests(model, range(70)), 10)
    found = unpacked(packed(calibrate(tmp_path, "all", 20)))
    profiles = others(found.profiles)
    bank = bank_of([Place("", each.boundary) for each in profiles], [sums_of(each) for each in profiles])
    served = others(sums_of_requests(model, range(100, 120)).profiles(1))
    for captured, claimed in ((3, 3), (3, 2), (3, 4), (5, 4)):
        judged = judge(sums_of(served[captured]), bank, claimed, bank.sums[claimed])
        wanted = Fault.NONE if captured == claimed else Fault.WRONG_BOUNDARY
        assert (judged.fault, judged.agree) == (wanted, captured)


def test_few_requests_and_one_window_are_said(tmp_path: Path) -> None:
    write_calibration(tmp_path / "specscope-states-1.json.gz", sums_of_requests(MadeUpModel(), range(9)), 10)
    notes = " ".join(calibrate(tmp_path, "all", 20).notes)
    assert "Requests: 9" in notes
    assert "how many kinds of text" in notes


def test_what_is_no_calibration_is_refused_with_the_way_to_one(tmp_path: Path) -> None:
    (tmp_path / "specscope-states-1.json.gz").write_bytes(b"no gzip")
    with pytest.raises(DumpError, match=r"holds no calibration.*SPECSCOPE_PROBE_CALIBRATE=1"):
        calibrate(tmp_path, "all", 20)


def test_unequal_models_are_not_added_up(tmp_path: Path) -> None:
    for number, model_class in enumerate(("One", "Other")):
        path = tmp_path / f"specscope-states-{number}.json.gz"
        write_calibration(path, sums_of_requests(MadeUpModel(), range(9)), 10, model_class)
    with pytest.raises(DumpError, match="do not belong together: 1 of One"):
        calibrate(tmp_path, "all", 20)
