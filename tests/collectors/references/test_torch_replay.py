"""The states that hooks take in torch are those that transformers itself hands out."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.sglang_cpu.install import Rig

from specscope_collectors.references.document import read_reference
from specscope_collectors.references.training_rows import read_rows

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
COLLECTORS = Path(__file__).resolve().parents[3] / "collectors"
DRIVER = Path(__file__).with_name("torch_driver.py")


@pytest.fixture(scope="module")
def replayed(installed_rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What the driver saw in the rig's Python, and the folder that it wrote into."""
    folder = tmp_path_factory.mktemp("replayed")
    target = installed_rig.models / "tiny-target"
    command = [str(installed_rig.python), str(DRIVER), str(target), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(COLLECTORS), "HF_HUB_OFFLINE": "1"}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return json.loads(answer.stdout.splitlines()[-1]), folder


def test_hooks_take_what_the_model_hands_out(replayed: tuple[dict[str, Any], Path]) -> None:
    seen, _ = replayed
    assert seen["boundaries"] == seen["layers"] + 1
    assert seen["largest_difference"] == 0.0
    assert seen["last_after_norm"] < 1e-5


def test_the_reference_and_the_rows_are_of_the_same_texts(replayed: tuple[dict[str, Any], Path]) -> None:
    seen, folder = replayed
    reference = read_reference(folder / "all.reference.json.gz")
    assert (reference.kind, reference.requests, len(reference.boundaries)) == (
        "boundaries", 12, seen["boundaries"],
    )  # fmt: skip
    assert reference.provenance["made_by"] == "torch replay"
    assert {each.boundary for each in reference.profiles} == set(range(seen["boundaries"]))
    rows = read_rows(folder / "all.rows.npz")
    assert len(rows) == 12
    assert rows[0].states.shape[0] == seen["boundaries"]


def test_token_ids_of_another_model_and_code_beside_weights_are_refused(
    replayed: tuple[dict[str, Any], Path],
) -> None:
    seen, _ = replayed
    assert "another model's dump" in seen["foreign"]
    assert "cannot load it as a causal model" in seen["no_model"]
