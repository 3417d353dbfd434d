"""The same states of a real model, as four tools write them, give the same reference. Needs no engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.real_model import install
from tests.sglang_cpu.environment import one_thread
from tests.support.real_model import BOUNDARIES, HIDDEN, LAYERS, RealModel

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.building import Building, Order
from specscope_collectors.references.document import Reference
from specscope_collectors.references.final_norm import read_norm_weight
from specscope_collectors.references.manifests import manifest_of, read_manifest

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]
NOW_MS = 1_790_000_000_000
TEXTS, TOKENS = 64, 64
TOOLS = {
    "hybrid": "speculators' files in SpecForge's folders",
    "specforge": "SpecForge",
    "safetensors": "speculators 0.5 or newer (vLLM)",
    "modelopt": "ModelOpt",
}

LAYER_IDS = {
    "hybrid": [1, 14, 26], "specforge": [1, 14, 26], "safetensors": [2, 15, 27], "modelopt": [1, 14, 26],
}  # fmt: skip
"""The same layers as the configuration of each tool's draft names them: by outputs, or by inputs."""


@pytest.fixture(scope="module")
def references(real_model: RealModel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reference]:
    """The reference of each layout; the draft's configuration says which layers they are."""
    folder = tmp_path_factory.mktemp("formats")
    script = [str(real_model.rig.python), str(install.HERE / "formats.py")]
    command = [*script, str(real_model.dump()), str(folder), str(real_model.target)]
    subprocess.run(command, check=True, timeout=300, env=one_thread())
    weights = next(path for path in real_model.target.glob("*.safetensors"))
    for name, ids in LAYER_IDS.items():
        config = json.loads((install.HEAD / "config.json").read_text(encoding="utf-8"))
        config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": ids}
        (folder / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    first = build(folder / "hybrid", weights, ())
    others = {name: build(folder / name, weights, first.token_ids) for name in TOOLS if name != "hybrid"}
    return {"hybrid": first, **others}


def build(root: Path, weights: Path, token_ids: tuple[int, ...]) -> Reference:
    # The same ids mean other layers in two of ModelOpt's ways of writing, so that they have to be told.
    told = BOUNDARIES if root.name == "modelopt" else ()
    order = Order(
        root=root, name="real", made_ms=NOW_MS, boundaries=told, manifest=manifest_of(root),
        draft=read_manifest(root.with_suffix(".json")), norm_weight=read_norm_weight(weights),
        token_ids=token_ids,
    )  # fmt: skip
    return Building(order).run()


def profiles(reference: Reference) -> dict[tuple[int | None, str], StateProfile]:
    return {(each.slot, each.row_class): each for each in reference.profiles}


@pytest.mark.parametrize("tool", TOOLS)
def test_each_layout_is_known_for_what_it_is(references: dict[str, Reference], tool: str) -> None:
    found = references[tool]
    assert found.tool == TOOLS[tool]
    assert (found.boundaries, found.hidden_size, found.dtype) == (BOUNDARIES, HIDDEN, "bfloat16")
    assert (found.files, found.requests, found.refused) == (TEXTS, TEXTS, {})
    assert found.rows == found.tokens <= TEXTS * TOKENS
    assert found.last is not None
    if tool == "specforge":
        assert (found.last.norm, found.last.boundary) == ("post_norm", None)
        assert found.last.median_square == pytest.approx(1, abs=0.01)
    else:
        # How many layers there are only the description beside the hybrid says.
        boundary = LAYERS if tool == "hybrid" else None
        assert (found.last.norm, found.last.boundary) == ("pre_norm", boundary)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "hybrid"])
def test_the_same_states_give_the_same_profiles(references: dict[str, Reference], tool: str) -> None:
    mine, theirs = profiles(references["hybrid"]), profiles(references[tool])
    assert references[tool].sink_limits[:3] == references["hybrid"].sink_limits[:3]
    slots = [place for place in mine if place[0] is not None or tool != "specforge"]
    assert {place for place in theirs if place in slots} == set(slots)
    for place in slots:
        one, other = mine[place], theirs[place]
        assert (other.rows, other.requests) == (one.rows, one.requests)
        assert other.boundary == one.boundary or place[0] is None
        assert other.ln_norms.bins == one.ln_norms.bins
        assert (other.token_ids, other.token_rows) == (one.token_ids, one.token_rows)
        assert other.invariants == one.invariants or place[1] == "other"
        for name in ("direction_sum", "direction_sum_of_squares", "sum_of_squares", "token_directions"):
            np.testing.assert_allclose(
                array(other, name), array(one, name), rtol=1e-4, atol=1e-4, err_msg=name
            )


def array(profile: StateProfile, name: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    found: np.ndarray[tuple[int], np.dtype[np.float32]] = np.frombuffer(getattr(profile, name), "<f4")
    return found


def test_answers_are_told_apart_where_the_files_say_which_they_are(references: dict[str, Reference]) -> None:
    answers = {tool: reference.answer_rows for tool, reference in references.items()}
    assert answers["safetensors"] is None
    assert answers["hybrid"] == answers["specforge"] == answers["modelopt"]
    assert answers["hybrid"]
