"""`specscope reference boundaries` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.synthetic_states import Target, reference_of

from specscope_collectors.references.document import packed
from specscope_server.cli.reference import main

CLASS = ("--model-class", "DeepseekV3ForCausalLM", "--layers", "61")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["boundaries", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_every_rule_of_a_class_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--ids", "2,30,58", *CLASS)
    assert status == 0
    assert "[2, 30, 58] in 0.5.8 → [3, 31, 59]" in out
    assert "[2, 30, 58] in 0.5.15 → [2, 30, 58]" in out


def test_one_version_and_negative_ids(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--ids=-1,2,30", "--engine-version", "0.5.23", *CLASS)
    assert status == 0
    assert "→ [2, 30]" in out
    assert "left out without a word" in out


def test_what_is_named_does_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--ids", "2", "--model-class", "\x1b[2J")
    assert "rule for ?[2J is not known" in out


def test_configurations_and_the_reference_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft, model, reference = (
        tmp_path / name for name in ("draft.json", "config.json", "r.reference.json.gz")
    )
    draft.write_text(json.dumps({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [-1, 2, 5]}}))
    model.write_text(json.dumps({"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 12}))
    reference.write_bytes(packed(reference_of(Target(), (3, 6, 9), rows=200)))
    arguments = ("--draft-config", str(draft), "--model-config", str(tmp_path), "--reference", str(reference))
    status, out, _ = run(capsys, *arguments, "--engine-version", "0.5.8")
    assert status == 1
    assert "trained on [3, 6, 9]" in out
    assert "slot 0 is the embedding" in out
    status, out, _ = run(capsys, *arguments, "--engine-version", "0.5.8", "--json")
    assert json.loads(out)["answers"][0]["boundaries"] == [0, 3, 6]
    assert run(capsys, "--ids", "2,5,8", *arguments[2:], "--engine-version", "0.5.8")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--ids", "2;3"), 2, "is no list of layer ids"),
        (("--ids", "2", "--system", "nobody"), 2, "nobody"),
        (("--draft-config", "nowhere.json"), 1, "nowhere.json is not there"),
    ],
    ids=["ids", "system", "file"],
)
def test_what_is_wrong_is_named(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, words: str
) -> None:
    found, _, err = run(capsys, *arguments)
    assert found == status
    assert words in err


def test_a_file_that_is_no_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("[1]")
    status, _, err = run(capsys, "--model-config", str(tmp_path))
    assert status == 1
    assert "is no JSON object" in err
