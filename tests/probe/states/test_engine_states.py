"""State profiles of a real SGLang: rows, splits and norms equal what the same model gives in plain torch."""

from __future__ import annotations

import math
import sqlite3
from base64 import b64decode
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.probe import settled, state_spool
from tests.support.product import serving
from tests.support.rig import Answer, Request, RunningRig
from tests.support.states import Watched, plain_states, profiles, rows

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

WARM_UP = [Request(f"Warm water number {index} for the tea in the large green pot", 40) for index in range(8)]
REQUESTS = [
    Request(f"The {index}th cup of tea was drunk by the river, slowly", 24 + index) for index in range(4)
]
BOUNDARIES = (1, 2, 3)
D, SLOTS, H = 4, 3, 256


@pytest.fixture(scope="module")
def watched(probed_rig: RunningRig) -> Watched:
    """An engine with the probe; the limits of sinks and the common ids are known."""
    probed_rig.generate(WARM_UP, concurrency=4)
    return Watched(probed_rig, state_spool(probed_rig.log_path.parent))


@pytest.fixture(scope="module")
def sampled(watched: Watched) -> tuple[list[Answer], list[dict[str, Any]]]:
    """Answers to `REQUESTS`, and the windows of their rows."""
    generate = watched.running.generate
    return watched.sampled(lambda: generate(REQUESTS), lambda: generate([Request("Ends the window", 12)]))


def test_rows_and_the_split_equal_the_oracle(sampled: tuple[list[Answer], list[dict[str, Any]]]) -> None:
    answers, files = sampled
    histograms = [answer["meta_info"]["spec_correct_drafts_histogram"] for answer in answers]
    accepted = sum((drafts + 1) * cycles for each in histograms for drafts, cycles in enumerate(each))
    verified = D * sum(cycles for each in histograms for cycles in each)
    prompts = sum(answer["meta_info"]["prompt_tokens"] for answer in answers)
    for slot in range(SLOTS):
        assert rows(files, "verify_accepted", slot) == accepted
        assert rows(files, "verify_rejected", slot) == verified - accepted
        assert rows(files, "prefill", slot) == prompts
        others = [each for each in profiles(files, "prefill", slot) if each["row_class"] == "other"]
        assert sum(each["rows"] for each in others) <= prompts - 4 * len(REQUESTS)
        assert sum(each["requests"] for each in others) == len(REQUESTS)


def test_capture_and_invariants(sampled: tuple[list[Answer], list[dict[str, Any]]]) -> None:
    _, files = sampled
    for file in files:
        assert file["capture"]["boundaries"] == [1, 2, 3]
        assert file["capture"]["draft_layers"] == [0, 1, 2]
        assert file["capture"]["width"] == SLOTS * H
        assert file["model_class"] == "LlamaForCausalLM"
        for each in file["profiles"]:
            assert each["boundary"] == each["slot"] + 1
            assert each["invariants"]["nonfinite_rows"] == each["invariants"]["zero_rows"] == 0
            assert each["invariants"].get("duplicate_rows", 0) == 0


def test_norms_equal_plain_torch(
    watched: Watched, sampled: tuple[list[Answer], list[dict[str, Any]]]
) -> None:
    answers, files = sampled
    texts = [(each.text, answer["output_ids"]) for each, answer in zip(REQUESTS, answers, strict=True)]
    rig = watched.running.rig
    plain = plain_states(rig.python, rig.models / "tiny-target", texts, BOUNDARIES)
    shown = [row for row in files[0]["rows"] if row["phase"] == "prefill"]
    assert {row["position"] for row in shown} == {0, 1, 2, 3}
    for row in shown:
        state = plain[0][row["slot"], row["position"]]
        assert row["norm"] == pytest.approx(np.linalg.norm(state), rel=1e-3)
        assert row["first_values"] == pytest.approx(state[:5].tolist(), abs=4e-3 * row["norm"])
    for slot in range(SLOTS):
        ends = [answer["meta_info"]["prompt_tokens"] for answer in answers]
        norms = np.concatenate(
            [np.linalg.norm(states[slot, :end], axis=-1) for states, end in zip(plain, ends, strict=True)]
        )
        sketches = [each["ln_norms"] for each in profiles(files, "prefill", slot)]
        assert sum(each["sum"] for each in sketches) == pytest.approx(
            np.log(norms).sum(), abs=1e-3 * len(norms)
        )
        assert max(each["maximum"] for each in sketches) == pytest.approx(math.log(norms.max()), abs=1e-3)


def test_sums_agree_with_each_other(sampled: tuple[list[Answer], list[dict[str, Any]]]) -> None:
    """Σ|u|² is the number of rows; Σh² is Σ exp(2 ln‖h‖) over those whose token stood nowhere there before; a
    token's direction is no longer than its rows.
    """
    _, files = sampled
    others = [each for file in files for each in file["profiles"] if each["row_class"] == "other"]
    assert others
    for each in others:
        squares = np.frombuffer(b64decode(each["direction_sum_of_squares"]), "<f4")
        assert squares.sum() == pytest.approx(each["rows"], rel=1e-4)
        energy = np.frombuffer(b64decode(each["sum_of_squares"]), "<f4").sum()
        mean = each["ln_norms"]["sum"] / each["rows"]
        distinct = each["invariants"]["distinct_rows"]
        assert 0 < distinct <= each["rows"]
        assert energy == pytest.approx(distinct * math.exp(2 * mean), rel=0.1)
    with_tokens = [each for each in others if "token_ids" in each]
    assert with_tokens
    for each in with_tokens:
        tokens = np.frombuffer(b64decode(each["token_directions"]), "<f4").reshape(-1, 256)
        lengths = np.linalg.norm(tokens, axis=1)
        assert (lengths < 1.5 * np.array(each["token_rows"])).all()
        assert (lengths > 0).all()


def test_the_part_is_on_and_counts(watched: Watched) -> None:
    found = settled(watched.running)
    assert found.values("specscope_probe_part", part="states", state="on") == [1]
    assert found.total("specscope_states_windows_total", outcome="written") > 0
    assert found.total("specscope_states_rows_total", phase="verify_accepted") > 0
    for kind in (
        "nonfinite_rows",
        "zero_rows",
        "duplicate_rows",
        "bad_width",
        "embedding",
        "capture_differs",
    ):
        assert found.total("specscope_states_invariants_total", kind=kind) == 0
    assert found.total("specscope_probe_errors_total") == 0


def test_the_product_takes_them_up_under_the_launch_that_it_scrapes(watched: Watched, tmp_path: Path) -> None:
    """Last: afterwards the spool is empty."""
    waiting = watched.files()
    config = tmp_path / "collect.toml"
    config.write_text(f'[[probe]]\nspool = "{watched.spool}"\nserver = "rig"\ninterval_seconds = 0.2\n')
    with serving(tmp_path, {"rig": watched.running.base_url}, "--collect", str(config)) as product:
        product.wait_for("empty spool", lambda: not watched.files())
        product.wait_for("state of the source", lambda: product.source_state("rig", "probe") is not None)
        window = {"from": "now-1h", "to": "now+1m"}
        [event] = product.get("/events", server="rig", kind="state_capture", **window)["events"]
        assert event["detail"]["capture"]["boundaries"] == [1, 2, 3]
        [launch] = product.get("/servers/rig/launches")["launches"]
    with closing(sqlite3.connect(tmp_path / "specscope.db")) as database:
        stored = database.execute(
            "select launch_id, phase, row_class, slot, rows from state_profile"
        ).fetchall()
    expected = [each for file in waiting for each in file["profiles"]]
    places = sorted((each["phase"], each["row_class"], each["slot"], each["rows"]) for each in expected)
    assert sorted(row[1:] for row in stored) == places
    assert {row[0] for row in stored} == {launch["id"]}
