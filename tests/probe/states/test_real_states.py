"""State profiles of a real model: norms equal plain torch, massive activations are sinks, faults are seen."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.probe import settled, variables
from tests.support.product import serving
from tests.support.real_model import BOUNDARIES, HIDDEN, RealEngineFactory, RealModel, ask
from tests.support.rig import Answer
from tests.support.states import File, Watched, plain_states, profiles, rows, sampling_all

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

PROMPTS, TOKENS = 8, 24
BFLOAT16_ROW, BFLOAT16_MEAN = 0.025, 0.005
"""What two ways to add up 27 layers in bfloat16 may differ by: of one row, relative to its norm, and of the
mean of ln‖h‖ over some hundred rows. A neighbouring layer differs by 0.02 to 0.15 in the latter."""
SLOTS = range(len(BOUNDARIES))


@pytest.fixture(scope="module")
def watched(
    real_engine: RealEngineFactory, real_model: RealModel, probe_site: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Watched:  # fmt: skip
    """The engine with the right layers; limits of sinks are known, as for other prompts."""
    folder = tmp_path_factory.mktemp("real-states")
    own = variables(probe_site, folder, **sampling_all(folder / "spool"))
    running = real_engine("right", own)
    ask(running, real_model.prompts()[-8:], TOKENS)
    return Watched(running, folder / "spool")


@pytest.fixture(scope="module")
def sampled(watched: Watched, real_model: RealModel) -> tuple[list[Answer], list[File]]:
    """Answers, one after the other, and the windows of their rows."""
    prompts = real_model.prompts(PROMPTS)
    return watched.sampled(
        lambda: ask(watched.running, prompts, TOKENS, concurrency=1),
        lambda: ask(watched.running, prompts[:1], TOKENS),
    )


def test_boundaries_are_read_from_the_model(sampled: tuple[list[Answer], list[File]]) -> None:
    for file in sampled[1]:
        assert file["capture"]["boundaries"] == list(BOUNDARIES)
        assert file["capture"]["draft_layers"] == [1, 14, 26]
        assert file["capture"]["width"] == len(BOUNDARIES) * HIDDEN


@pytest.fixture(scope="module")
def plain(sampled: tuple[list[Answer], list[File]], real_model: RealModel) -> list[Any]:
    """[slots, tokens, H] of each whole text, as transformers computes them in bfloat16."""
    prompts = real_model.prompts(PROMPTS)
    texts = [(text, answer["output_ids"]) for text, answer in zip(prompts, sampled[0], strict=True)]
    return plain_states(real_model.rig.python, real_model.target, texts, BOUNDARIES)


@pytest.mark.parametrize("phase", ["prefill", "verify_accepted"])
def test_rows_equal_plain_torch(
    phase: str, sampled: tuple[list[Answer], list[File]], plain: list[Any]
) -> None:
    """Of the first request; two orders of the same sums in bfloat16 are apart by a little."""
    shown = [row for row in sampled[1][0]["rows"] if row["phase"] == phase]
    assert len(shown) >= 3 * len(BOUNDARIES)
    for row in shown:
        state = plain[0][row["slot"], row["position"]]
        assert row["norm"] == pytest.approx(np.linalg.norm(state), rel=BFLOAT16_ROW)
        assert row["first_values"] == pytest.approx(state[:5].tolist(), abs=BFLOAT16_ROW * row["norm"])


def test_norms_equal_plain_torch(sampled: tuple[list[Answer], list[File]], plain: list[Any]) -> None:
    answers, files = sampled
    ends = [answer["meta_info"]["prompt_tokens"] for answer in answers]
    for slot in SLOTS:
        prompts = [states[slot, :end] for states, end in zip(plain, ends, strict=True)]
        ln_norms = np.log(np.linalg.norm(np.concatenate(prompts), axis=-1))
        sketches = [each["ln_norms"] for each in profiles(files, "prefill", slot)]
        assert rows(files, "prefill", slot) == len(ln_norms)
        mean = sum(each["sum"] for each in sketches) / len(ln_norms)
        assert mean == pytest.approx(ln_norms.mean(), abs=BFLOAT16_MEAN)
        assert max(each["maximum"] for each in sketches) == pytest.approx(ln_norms.max(), abs=BFLOAT16_MEAN)


def test_massive_activations_are_sinks(sampled: tuple[list[Answer], list[File]]) -> None:
    """Position 0 of each request, at every slot, and no row that was decoded."""
    answers, files = sampled
    for slot in SLOTS:
        assert rows(files, "prefill", slot, "sink") == len(answers)
        assert rows(files, "prefill", slot, "head") == 3 * len(answers)
        assert rows(files, "verify_accepted", slot, "sink", "head") == 0
        [sinks, others] = [
            [each["ln_norms"] for each in profiles(files, "prefill", slot) if each["row_class"] == row_class]
            for row_class in ("sink", "other")
        ]
        assert min(each["minimum"] for each in sinks) > max(each["maximum"] for each in others)


def test_nothing_is_wrong_with_them(watched: Watched) -> None:
    found = settled(watched.running)
    kinds = ("nonfinite_rows", "zero_rows", "duplicate_rows", "bad_width", "width_changed", "embedding")
    for kind in (*kinds, "capture_differs"):
        assert found.total("specscope_states_invariants_total", kind=kind) == 0
    assert found.total("specscope_states_invariants_total", kind="equal_id_pairs") > 0
    assert found.total("specscope_probe_errors_total") == 0


def test_they_reach_the_store(watched: Watched, tmp_path: Path) -> None:
    """Last: afterwards the spool is empty."""
    expected = [each for file in watched.files() for each in file["profiles"]]
    config = tmp_path / "collect.toml"
    config.write_text(f'[[probe]]\nspool = "{watched.spool}"\nserver = "smol"\ninterval_seconds = 0.2\n')
    with serving(tmp_path, {"smol": watched.running.base_url}, "--collect", str(config)) as product:
        product.wait_for("empty spool", lambda: not watched.files())
        product.wait_for("state of the source", lambda: product.source_state("smol", "probe") == "ok")
    with closing(sqlite3.connect(tmp_path / "specscope.db")) as database:
        stored = database.execute(
            "select phase, row_class, slot, boundary, rows from state_profile"
        ).fetchall()
    names = ("phase", "row_class", "slot", "boundary", "rows")
    assert sorted(stored) == sorted(tuple(each[name] for name in names) for each in expected)
